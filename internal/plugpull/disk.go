package plugpull

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Disk is what was done to the files of one directory, from the first moment on. Its methods may be called at once.
type Disk struct {
	mu      sync.Mutex
	base    Image // at the first moment, with the lowest files, sorted by name
	log     []change
	names   map[string]File // the directory as the process sees it
	files   File            // how many there were
	tried   int
	silent  bool
	trouble Trouble
	met     bool
}

// File is a file of a Disk, whatever its name is by now.
type File int

// A change is one that a moment can fall before or after.
//
//sumtype:decl
type change interface{ isChange() }

// An edit is a change of what is in a file.
//
//sumtype:decl
type edit interface{ isEdit() }

type (
	wrote struct {
		file File
		off  int64
		data []byte
	}
	resized struct {
		file File
		size int64
	}
	synced struct {
		file File
		ok   bool
	}
	named struct { // or removed, if the file is none
		name string
		file File
	}
	syncedNames struct{}
)

func (wrote) isChange()       {}
func (resized) isChange()     {}
func (synced) isChange()      {}
func (named) isChange()       {}
func (syncedNames) isChange() {}

func (wrote) isEdit()   {}
func (resized) isEdit() {}

// none is no file.
const none File = 0

// Moment is how many changes there were so far. Power can be lost at this moment, and at every one before it.
func (d *Disk) Moment() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

// NewDisk returns a disk that keeps these files from the first moment on.
func NewDisk(image Image) *Disk {
	d := &Disk{names: map[string]File{}, base: image}
	for _, name := range slices.Sorted(maps.Keys(image)) {
		d.files++
		d.names[name] = d.files
	}
	return d
}

// Open returns the file of a name, and makes one if there is none.
func (d *Disk) Open(name string) File {
	d.mu.Lock()
	defer d.mu.Unlock()
	if file, ok := d.names[name]; ok {
		return file
	}
	d.files++
	d.names[name] = d.files
	d.log = append(d.log, named{name, d.files})
	return d.files
}

// Delete says that a name was removed. Whoever has the file open can go on with it.
func (d *Disk) Delete(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.names[name]; !ok {
		return
	}
	delete(d.names, name)
	d.log = append(d.log, named{name, none})
}

// Write says that bytes were written. They are copied.
func (d *Disk) Write(file File, off int64, data []byte) {
	d.add(wrote{file, off, slices.Clone(data)})
}

// Truncate says that a file was cut, or filled with zeros, to a size.
func (d *Disk) Truncate(file File, size int64) { d.add(resized{file, size}) }

// Sync says that everything written to a file is kept, but not that its name is.
func (d *Disk) Sync(file File) { d.add(synced{file, true}) }

// SyncFailed says that nobody knows what is kept, and that another Sync will not make up for it.
func (d *Disk) SyncFailed(file File) { d.add(synced{file, false}) }

// SyncNames says that all names are kept as they are, and no name that was removed.
func (d *Disk) SyncNames() { d.add(syncedNames{}) }

func (d *Disk) add(c change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, c)
}

// Kind is what an operation does.
type Kind int

// What can be tried. Reading, asking for the size and mapping shared memory change nothing, but can fail.
const (
	Opening Kind = iota
	Reading
	Writing
	Truncating
	Syncing
	Deleting
	Sizing
	Mapping
	kinds
)

func (k Kind) String() string {
	return [kinds]string{"open", "read", "write", "truncate", "sync", "delete", "size", "map"}[k]
}

// Kinds are all of them.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for n := range all {
		all[n] = Kind(n)
	}
	return all
}

// Trouble is the one operation that will fail. The zero value is none.
type Trouble struct {
	// At counts the operations of these kinds from now on, beginning with 1.
	At    int
	Kinds []Kind
	// Err is how it fails.
	Err error
}

// Expect makes an operation fail, and forgets the trouble that was expected before.
func (d *Disk) Expect(t Trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trouble, d.tried, d.met = t, 0, false
}

// Met reports whether the trouble that was expected has come.
func (d *Disk) Met() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.met
}

// Try asks whether an operation goes well. It returns the error of the trouble that was expected, wrapped, once.
func (d *Disk) Try(kind Kind) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.silent || !slices.Contains(d.trouble.Kinds, kind) {
		return nil
	}
	d.tried++
	if d.tried != d.trouble.At {
		return nil
	}
	d.met = true
	return fmt.Errorf("%v: %w", kind, d.trouble.Err)
}

// Aside does something that meets no trouble and is not counted: a look at the database that is no part of the test.
func (d *Disk) Aside(look func()) {
	d.silence(true)
	defer d.silence(false)
	look()
}

func (d *Disk) silence(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silent = on
}
