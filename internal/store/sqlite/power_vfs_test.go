//go:build unix

package sqlite

import (
	"errors"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fermata-go/fermata/internal/powerloss"
)

// SQLite accesses its files through a table of functions, the VFS, and each open file through
// another one. Both are data, so the driver and the store stay unchanged: the driver's functions
// are called, with a powerloss.Disk in front of those that change a file or can fail. Only a sync
// is not forwarded, because it would only make the tests slower.
//
// Files in a directory that has no Disk are not touched.

// watchedDirs holds the disks by directory, and the open files by the address that SQLite uses.
var watchedDirs = struct {
	sync.Mutex
	install sync.Once
	vfs     sqlite3.Tsqlite3_vfs // the original
	disks   map[string]*powerloss.Disk
	files   map[uintptr]*watchedFile
	methods map[uintptr]uintptr // wrapped methods, by those of the driver
}{disks: map[string]*powerloss.Disk{}, files: map[uintptr]*watchedFile{}, methods: map[uintptr]uintptr{}}

type watchedFile struct {
	disk    *powerloss.Disk
	file    powerloss.File
	methods *sqlite3.Tsqlite3_io_methods // of the driver
	// The unix VFS syncs the directory with the first sync of a new journal or WAL, and only then.
	syncNames bool
}

// watch attaches a disk to a directory.
func watch(dir string, disk *powerloss.Disk) {
	watchedDirs.install.Do(installWatch)
	watchedDirs.Lock()
	defer watchedDirs.Unlock()
	watchedDirs.disks[dir] = disk
}

func unwatch(dir string) {
	watchedDirs.Lock()
	defer watchedDirs.Unlock()
	delete(watchedDirs.disks, dir)
}

func installWatch() {
	tls := libc.NewTLS()
	defer tls.Close()
	vfs := at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	watchedDirs.vfs = *vfs
	vfs.FxOpen, vfs.FxDelete = address(watchOpen), address(watchDelete)
}

// at returns the value at an address of the C heap.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// address returns the address of a function, which must not be a closure; see cFuncPointer in the
// driver.
func address[F any](function F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{function})) }

// function is the inverse of address.
func function[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{address})) }

type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	transferFunc = func(tls *libc.TLS, file, buffer uintptr, amount int32, off int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	sizeFunc     = func(tls *libc.TLS, file, size uintptr) int32
	mapFunc      = func(tls *libc.TLS, file uintptr, region, size, extend int32, out uintptr) int32
)

// diskOf returns the disk of a path, or nil, and the name of the file.
func diskOf(path uintptr) (*powerloss.Disk, string) {
	dir, name := filepath.Split(libc.GoString(path))
	watchedDirs.Lock()
	defer watchedDirs.Unlock()
	return watchedDirs.disks[filepath.Clean(dir)], name
}

func watchedAt(file uintptr) *watchedFile {
	watchedDirs.Lock()
	defer watchedDirs.Unlock()
	return watchedDirs.files[file]
}

func watchOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	var disk *powerloss.Disk
	var base string
	if name != 0 {
		disk, base = diskOf(name)
	}
	if disk != nil && disk.Operation(powerloss.Opening) != nil {
		return sqlite3.SQLITE_CANTOPEN
	}
	rc := function[openFunc](watchedDirs.vfs.FxOpen)(tls, vfs, name, file, flags, outFlags)
	if rc != sqlite3.SQLITE_OK || disk == nil {
		return rc
	}
	methods := &at[sqlite3.Tsqlite3_file](file).FpMethods
	w := &watchedFile{disk: disk, methods: at[sqlite3.Tsqlite3_io_methods](*methods)}
	w.file = disk.Open(base)
	w.syncNames = flags&sqlite3.SQLITE_OPEN_CREATE != 0 && flags&(sqlite3.SQLITE_OPEN_WAL|sqlite3.SQLITE_OPEN_MAIN_JOURNAL) != 0
	watchedDirs.Lock()
	defer watchedDirs.Unlock()
	watchedDirs.files[file] = w
	*methods = wrapMethods(tls, *methods)
	return rc
}

// wrapMethods returns methods that call the disk first. They are on the C heap, because SQLite
// keeps pointers to them.
func wrapMethods(tls *libc.TLS, driver uintptr) uintptr {
	if methods, ok := watchedDirs.methods[driver]; ok {
		return methods
	}
	methods := sqlite3.Xsqlite3_malloc(tls, int32(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	m := at[sqlite3.Tsqlite3_io_methods](methods)
	*m = *at[sqlite3.Tsqlite3_io_methods](driver)
	m.FxClose, m.FxRead, m.FxWrite, m.FxTruncate = address(watchClose), address(watchRead), address(watchWrite), address(watchTruncate)
	m.FxSync, m.FxFileSize, m.FxShmMap = address(watchSync), address(watchSize), address(watchMap)
	watchedDirs.methods[driver] = methods
	return methods
}

func watchClose(tls *libc.TLS, file uintptr) int32 {
	w := watchedAt(file)
	watchedDirs.Lock()
	delete(watchedDirs.files, file)
	watchedDirs.Unlock()
	return function[closeFunc](w.methods.FxClose)(tls, file)
}

func watchDelete(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32 {
	disk, base := diskOf(name)
	if disk != nil && disk.Operation(powerloss.Deleting) != nil {
		return sqlite3.SQLITE_IOERR_DELETE
	}
	rc := function[deleteFunc](watchedDirs.vfs.FxDelete)(tls, vfs, name, syncDir)
	if rc == sqlite3.SQLITE_OK && disk != nil {
		disk.Delete(base)
		if syncDir != 0 {
			disk.SyncNames()
		}
	}
	return rc
}

func watchRead(tls *libc.TLS, file, buffer uintptr, amount int32, off int64) int32 {
	w := watchedAt(file)
	if w.disk.Operation(powerloss.Reading) != nil {
		return sqlite3.SQLITE_IOERR_READ
	}
	return function[transferFunc](w.methods.FxRead)(tls, file, buffer, amount, off)
}

// watchWrite writes the first half when it fails.
func watchWrite(tls *libc.TLS, file, buffer uintptr, amount int32, off int64) int32 {
	w := watchedAt(file)
	trouble := w.disk.Operation(powerloss.Writing)
	if trouble != nil {
		amount /= 2
	}
	rc := function[transferFunc](w.methods.FxWrite)(tls, file, buffer, amount, off)
	if rc == sqlite3.SQLITE_OK {
		w.disk.Write(w.file, off, unsafe.Slice(at[byte](buffer), amount))
	}
	switch {
	case errors.Is(trouble, syscall.ENOSPC):
		return sqlite3.SQLITE_FULL
	case trouble != nil:
		return sqlite3.SQLITE_IOERR_WRITE
	}
	return rc
}

func watchTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	w := watchedAt(file)
	if w.disk.Operation(powerloss.Truncating) != nil {
		return sqlite3.SQLITE_IOERR_TRUNCATE
	}
	rc := function[truncateFunc](w.methods.FxTruncate)(tls, file, size)
	if rc == sqlite3.SQLITE_OK {
		w.disk.Truncate(w.file, size)
	}
	return rc
}

func watchSync(_ *libc.TLS, file uintptr, _ int32) int32 {
	w := watchedAt(file)
	if w.disk.Operation(powerloss.Syncing) != nil {
		w.disk.SyncFailed(w.file)
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	w.disk.Sync(w.file)
	if w.syncNames {
		w.disk.SyncNames()
		w.syncNames = false
	}
	return sqlite3.SQLITE_OK
}

func watchSize(tls *libc.TLS, file, size uintptr) int32 {
	w := watchedAt(file)
	if w.disk.Operation(powerloss.Sizing) != nil {
		return sqlite3.SQLITE_IOERR_FSTAT
	}
	return function[sizeFunc](w.methods.FxFileSize)(tls, file, size)
}

func watchMap(tls *libc.TLS, file uintptr, region, size, extend int32, out uintptr) int32 {
	w := watchedAt(file)
	switch err := w.disk.Operation(powerloss.Mapping); {
	case errors.Is(err, syscall.ENOSPC): // the file that backs the memory must grow
		return sqlite3.SQLITE_IOERR_SHMSIZE
	case err != nil:
		return sqlite3.SQLITE_IOERR_SHMMAP
	}
	return function[mapFunc](w.methods.FxShmMap)(tls, file, region, size, extend, out)
}
