# Software of site summit as modules and a prefix. Rendered by gpubench; sourced by the job script.
module purge
module load gcc/7.4.0
module load cuda/10.1.243
module load python/3.7.0-anaconda3-5.3.0
export PATH='/ccs/proj/o'"'"'neill/bin':$PATH
export LD_LIBRARY_PATH='/ccs/proj/o'"'"'neill/lib'
