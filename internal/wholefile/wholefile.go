// Package wholefile writes files that are there whole, or not at all, whenever the machine stops: beside their place, from where they are moved.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Make writes a file where there is none. What is there already stays as it is, and the error is [fs.ErrExist].
func Make(path string, mode fs.FileMode, write func(*os.File) error) error {
	if err := free(path); err != nil {
		return err
	}
	return put(path, mode, write, func(from, to string) error { return moveBy(os.Link, from, to) })
}

// Replace writes a file in the place of the one that is there, if there is one.
func Replace(path string, mode fs.FileMode, write func(*os.File) error) error {
	return put(path, mode, write, os.Rename)
}

// put writes a file beside its place, and has it moved there. If anything fails nothing is left of it: nobody would look after it, and it may hold a secret.
func put(path string, mode fs.FileMode, write func(*os.File) error, move func(from, to string) error) error {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	file, err := os.CreateTemp(dir, name+".part-*") // with mode 0600; whoever finds one after a crash sees what it was to be
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(write(file), file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := move(file.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// free is [fs.ErrExist] if a place is taken.
func free(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return &fs.PathError{Op: "make", Path: path, Err: fs.ErrExist}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// moveBy gives a file a second name, which no other file has. Where a file has one name only, as on a stick, somebody looks whether it is free, and moves the file.
func moveBy(link func(from, to string) error, from, to string) error {
	err := link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := free(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
