// Package atomicfile writes files atomically: after a crash a file is either complete or absent. It
// writes to a temporary file in the same directory and moves it into place.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Create writes a new file. If the file exists it is kept, and the error is [fs.ErrExist].
func Create(path string, mode fs.FileMode, write func(*os.File) error) error {
	if err := checkAbsent(path); err != nil {
		return err
	}
	return writeAndMove(path, mode, write, func(from, to string) error { return linkOrRename(os.Link, from, to) })
}

// Replace writes a file and replaces an existing one.
func Replace(path string, mode fs.FileMode, write func(*os.File) error) error {
	return writeAndMove(path, mode, write, os.Rename)
}

// tempMode is the mode of a file created by [os.CreateTemp].
const tempMode = 0o600

// writeAndMove writes a temporary file in the same directory and moves it to path. On failure it
// removes the temporary file, which may contain a secret.
func writeAndMove(path string, mode fs.FileMode, write func(*os.File) error, move func(from, to string) error) error {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	// the name shows its purpose to an operator who finds it after a crash
	file, err := os.CreateTemp(dir, name+".part-*")
	if err != nil {
		if wrong, ok := errors.AsType[*fs.PathError](err); ok {
			wrong.Path = path // the caller does not know the temporary name
		}
		return err
	}
	defer os.Remove(file.Name())
	if mode != tempMode { // where files have no modes, setting one fails
		err = file.Chmod(mode) // before write, which may change the owner
	}
	if err == nil {
		err = write(file)
	}
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := move(file.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// checkAbsent returns [fs.ErrExist] if the path exists.
func checkAbsent(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return &fs.PathError{Op: "make", Path: path, Err: fs.ErrExist}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// linkOrRename gives a file its final name without replacing another file. On file systems without
// hard links it creates an empty file first and renames over it. Only there can a crash leave an
// empty file.
func linkOrRename(link func(from, to string) error, from, to string) error {
	err := link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	place, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(place.Close(), os.Rename(from, to)); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

// syncDir makes the directory entry durable. Some directories cannot be opened by users who may
// write to them, and some systems cannot sync directories. In these cases the system writes the
// entry later.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
