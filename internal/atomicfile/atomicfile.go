// Package wholefile writes files that are there whole, or not at all, whenever the machine stops: beside their place, from where they are moved.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Create writes a file where there is none. What is there already stays as it is, and the error is [fs.ErrExist].
func Create(path string, mode fs.FileMode, write func(*os.File) error) error {
	if err := checkAbsent(path); err != nil {
		return err
	}
	return writeAndMove(path, mode, write, func(from, to string) error { return linkOrRename(os.Link, from, to) })
}

// Replace writes a file in the place of the one that is there, if there is one.
func Replace(path string, mode fs.FileMode, write func(*os.File) error) error {
	return writeAndMove(path, mode, write, os.Rename)
}

// tempPrefix is the mode of a file that [os.CreateTemp] makes.
const tempPrefix = 0o600

// writeAndMove writes a file beside its place, and has it moved there. If anything fails nothing is left of it: nobody would look after it, and it may hold a secret.
func writeAndMove(path string, mode fs.FileMode, write func(*os.File) error, move func(from, to string) error) error {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	file, err := os.CreateTemp(dir, name+".part-*") // whoever finds one after a crash sees what it was to be
	if err != nil {
		if wrong, ok := errors.AsType[*fs.PathError](err); ok {
			wrong.Path = path // whoever asked for it has not heard of the other name
		}
		return err
	}
	defer os.Remove(file.Name())
	if mode != tempPrefix { // where files have no modes, asking for one fails
		err = file.Chmod(mode) // before write, which may give it to somebody else
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

// checkAbsent is [fs.ErrExist] if a place is taken.
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

// linkOrRename gives a file a second name, which no other file has. Where a file has one name only, as on a stick, the name is taken with an empty file first, in whose place it is moved:
// there alone, whoever stops in between leaves an empty one.
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

// syncDir has it written down that the file is there. Not every folder can be opened by those who may write to it, and not every system does this for folders: there,
// the system sees to it in time.
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
