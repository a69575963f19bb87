import sys
from pathlib import Path

# The builder serves tests/store, tests/merge and tests/report alike, without making packages of them.
sys.path.insert(0, str(Path(__file__).parent))
