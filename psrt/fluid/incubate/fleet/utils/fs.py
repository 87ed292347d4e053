"""Files of this host by the methods of Fluid's file systems."""

from __future__ import annotations

import shutil
from pathlib import Path

from psrt.core.errors import DataError


class FSFileExistsError(DataError, FileExistsError):
    """A file is in the place of another one."""


class FSFileNotExistsError(DataError, FileNotFoundError):
    """There is no such file."""


class LocalFS:
    """Files and directories of this host; paths are texts."""

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """Return the names of directories and of files below a path, none if it does not exist."""
        entries = sorted(Path(fs_path).iterdir()) if self.is_exist(fs_path) else []
        directories = [entry.name for entry in entries if entry.is_dir()]
        return directories, [entry.name for entry in entries if not entry.is_dir()]

    def list_dirs(self, fs_path: str) -> list[str]:
        """Return the names of directories below a path."""
        return self.ls_dir(fs_path)[0]

    def is_file(self, fs_path: str) -> bool:
        """Return whether a file has this path."""
        return Path(fs_path).is_file()

    def is_dir(self, fs_path: str) -> bool:
        """Return whether a directory has this path."""
        return Path(fs_path).is_dir()

    def is_exist(self, fs_path: str) -> bool:
        """Return whether a file or directory has this path."""
        return Path(fs_path).exists()

    def need_upload_download(self) -> bool:
        """Return False: files are here."""
        return False

    def mkdirs(self, fs_path: str) -> None:
        """Make a directory, and those above it; one that exists stays.

        Raises `FSFileExistsError` where a file has this path.
        """
        if self.is_file(fs_path):
            raise FSFileExistsError(f"mkdirs was given {fs_path}, which is a file.")
        Path(fs_path).mkdir(parents=True, exist_ok=True)

    def touch(self, fs_path: str, exist_ok: bool = True) -> None:
        """Make an empty file; raises `FSFileExistsError` for another one without `exist_ok`."""
        if self.is_exist(fs_path) and not exist_ok:
            raise FSFileExistsError(f"touch was given {fs_path}, which exists.")
        Path(fs_path).touch()

    def delete(self, fs_path: str) -> None:
        """Delete a file, or a directory with all below it; nothing happens without it."""
        if self.is_dir(fs_path):
            shutil.rmtree(fs_path)
        else:
            Path(fs_path).unlink(missing_ok=True)

    def rename(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Give a file or directory another path."""
        Path(fs_src_path).rename(fs_dst_path)

    def mv(
        self, src_path: str, dst_path: str, overwrite: bool = False, test_exists: bool = False
    ) -> None:
        """Give a file or directory another path; with `overwrite` it replaces what is there.

        Raises `FSFileNotExistsError`, and `FSFileExistsError` without `overwrite`. `test_exists`
        has no effect.
        """
        if not self.is_exist(src_path):
            raise FSFileNotExistsError(f"mv was given {src_path}, which does not exist.")
        if self.is_exist(dst_path):
            if not overwrite:
                raise FSFileExistsError(
                    f"mv was given {dst_path}, which exists.", hint="Give overwrite=True."
                )
            self.delete(dst_path)
        self.rename(src_path, dst_path)

    def upload(self, local_path: str, fs_path: str) -> None:
        """Copy a file or directory to another path."""
        self._copy(local_path, fs_path)

    def download(self, fs_path: str, local_path: str) -> None:
        """Copy a file or directory from another path."""
        self._copy(fs_path, local_path)

    def _copy(self, source: str, target: str) -> None:
        if not self.is_exist(source):
            raise FSFileNotExistsError(f"{source} was to be copied, but does not exist.")
        if self.is_dir(source):
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)


__all__ = ["FSFileExistsError", "FSFileNotExistsError", "LocalFS"]
