package powerloss

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Disk records the operations on the files of one directory. Its methods are safe for concurrent
// use.
type Disk struct {
	mu         sync.Mutex
	base       Image // the initial content, with the lowest files, sorted by name
	log        []change
	names      map[string]File // the directory as the process sees it
	files      File            // the number of files
	operations int
	unfaulted  bool
	fault      Fault
	faultHit   bool
}

// File is a file of a Disk, independent of its name.
type File int

// A change is an operation that power can be lost before or after.
//
//sumtype:decl
type change interface{ isChange() }

// A contentChange is a change of the content of a file.
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
	nameChange struct { // file none removes the name
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

// none is not a file.
const none File = 0

// Changes returns the number of changes so far. Power can be lost after any number of them.
func (d *Disk) Changes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

// NewDisk returns a disk with initial files.
func NewDisk(image Image) *Disk {
	d := &Disk{names: map[string]File{}, base: image}
	for _, name := range slices.Sorted(maps.Keys(image)) {
		d.files++
		d.names[name] = d.files
	}
	return d
}

// Open returns the file of a name and creates it if needed.
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

// Delete records that a name was removed. Processes that have the file open can still use it.
func (d *Disk) Delete(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.names[name]; !ok {
		return
	}
	delete(d.names, name)
	d.log = append(d.log, nameChange{name, none})
}

// Write records a write. It copies the data.
func (d *Disk) Write(file File, off int64, data []byte) {
	d.add(writeChange{file, off, slices.Clone(data)})
}

// Truncate records that a file was cut or extended with zeros.
func (d *Disk) Truncate(file File, size int64) { d.add(resizeChange{file, size}) }

// Sync records that everything written to a file is durable, but not its name.
func (d *Disk) Sync(file File) { d.add(syncChange{file, true}) }

// SyncFailed records a failed sync: the durable content is unknown, and a later Sync does not
// repair it.
func (d *Disk) SyncFailed(file File) { d.add(syncChange{file, false}) }

// SyncNames records that the names in the directory are durable.
func (d *Disk) SyncNames() { d.add(syncNamesChange{}) }

func (d *Disk) add(c change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, c)
}

// Kind is the type of an operation.
type Kind int

// The types of operations. Reading, asking for the size and mapping shared memory change nothing
// but can fail.
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

// Kinds returns all types.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for n := range all {
		all[n] = Kind(n)
	}
	return all
}

// Fault is one operation that will fail. The zero value injects nothing.
type Fault struct {
	// At counts the operations of these kinds from now on, starting with 1.
	At    int
	Kinds []Kind
	// Err is the error of the operation.
	Err error
}

// SetFault sets the fault and replaces an earlier one.
func (d *Disk) SetFault(t Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.operations, d.faultHit = t, 0, false
}

// FaultHit reports whether the fault has occurred.
func (d *Disk) FaultHit() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faultHit
}

// Operation is called before each operation. It returns the wrapped error of the fault once.
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

// WithoutFaults runs a function without faults and without counting, for checks that are not part
// of the test.
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
