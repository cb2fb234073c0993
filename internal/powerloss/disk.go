package powerloss

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Disk is what was done to the files of one directory, from the first moment on. Its methods may be called at once.
type Disk struct {
	mu         sync.Mutex
	base       Image // at the first moment, with the lowest files, sorted by name
	log        []change
	names      map[string]File // the directory as the process sees it
	files      File            // how many there were
	operations int
	unfaulted  bool
	fault      Fault
	faultHit   bool
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
type contentChange interface{ isEdit() }

type (
	writeChange struct {
		file File
		off  int64
		data []byte
	}
	resizeChange struct {
		file File
		size int64
	}
	syncChange struct {
		file File
		ok   bool
	}
	nameChange struct { // or removed, if the file is none
		name string
		file File
	}
	syncNamesChange struct{}
)

func (writeChange) isChange()     {}
func (resizeChange) isChange()    {}
func (syncChange) isChange()      {}
func (nameChange) isChange()      {}
func (syncNamesChange) isChange() {}

func (writeChange) isEdit()  {}
func (resizeChange) isEdit() {}

// none is no file.
const none File = 0

// Moment is how many changes there were so far. Power can be lost at this moment, and at every one before it.
func (d *Disk) Changes() int {
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
	d.log = append(d.log, nameChange{name, d.files})
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
	d.log = append(d.log, nameChange{name, none})
}

// Write says that bytes were written. They are copied.
func (d *Disk) Write(file File, off int64, data []byte) {
	d.add(writeChange{file, off, slices.Clone(data)})
}

// Truncate says that a file was cut, or filled with zeros, to a size.
func (d *Disk) Truncate(file File, size int64) { d.add(resizeChange{file, size}) }

// Sync says that everything written to a file is kept, but not that its name is.
func (d *Disk) Sync(file File) { d.add(syncChange{file, true}) }

// SyncFailed says that nobody knows what is kept, and that another Sync will not make up for it.
func (d *Disk) SyncFailed(file File) { d.add(syncChange{file, false}) }

// SyncNames says that all names are kept as they are, and no name that was removed.
func (d *Disk) SyncNames() { d.add(syncNamesChange{}) }

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

// Fault is the one operation that will fail. The zero value is none.
type Fault struct {
	// At counts the operations of these kinds from now on, beginning with 1.
	At    int
	Kinds []Kind
	// Err is how it fails.
	Err error
}

// Expect makes an operation fail, and forgets the trouble that was expected before.
func (d *Disk) SetFault(t Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.operations, d.faultHit = t, 0, false
}

// Met reports whether the trouble that was expected has come.
func (d *Disk) FaultHit() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faultHit
}

// Try asks whether an operation goes well. It returns the error of the trouble that was expected, wrapped, once.
func (d *Disk) Operation(kind Kind) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unfaulted || !slices.Contains(d.fault.Kinds, kind) {
		return nil
	}
	d.operations++
	if d.operations != d.fault.At {
		return nil
	}
	d.faultHit = true
	return fmt.Errorf("%v: %w", kind, d.fault.Err)
}

// Aside does something that meets no trouble and is not counted: a look at the database that is no part of the test.
func (d *Disk) WithoutFaults(look func()) {
	d.setUnfaulted(true)
	defer d.setUnfaulted(false)
	look()
}

func (d *Disk) setUnfaulted(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unfaulted = on
}
