"""Files that come with gpubench: sites, suites, issues, templates, docker; the checkout's, or the copy in a wheel."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def root() -> Path:
    """The directory that holds ``sites/``, ``suites/``, ``issues/``, ``templates/`` and ``docker/``."""
    packed = PACKAGE / "_data"
    return packed if packed.is_dir() else PACKAGE.parent


def docker_file(name: str) -> Path:
    return root() / "docker" / name


def texts(folder: str, pattern: str = "**/*.j2") -> dict[str, str]:
    """Every matching text below ``folder``, by path relative to it."""
    base = root() / folder
    return {str(path.relative_to(base)): path.read_text(encoding="utf-8") for path in sorted(base.glob(pattern))}


def schema(name: str) -> Path:
    """The JSON Schema of a kind of file: ``site`` or ``suite``."""
    folder = root() / "schemas" if root().name == "_data" else root() / "docs" / "schemas"
    return folder / f"{name}.json"


def job_templates() -> dict[str, str]:
    """What jobs are rendered from: scripts with all their parts, and object files."""
    return texts("templates", "**/*.sh.j2") | texts("templates", "*/job.*.j2")


def node_half() -> dict[str, bytes]:
    """The source files of the node half, by path below the package's parent."""
    paths = [PACKAGE / "__init__.py", *sorted((PACKAGE / "node").glob("**/*.py"))]
    return {f"gpubench/{path.relative_to(PACKAGE)}": path.read_bytes() for path in paths}


def docker_sources() -> dict[str, bytes]:
    """Every file below ``docker/``, by path relative to it."""
    base = root() / "docker"
    return {str(path.relative_to(base)): path.read_bytes() for path in sorted(base.rglob("*")) if path.is_file()}
