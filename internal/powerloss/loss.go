package powerloss

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Image is the content of a directory, by name.
type Image map[string][]byte

// Save writes the files into a directory.
func (i Image) Save(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(i)) {
		if err := os.WriteFile(filepath.Join(dir, name), i[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Survival decides what happens to data that was not synced.
type Survival struct {
	// Rand decides for each sector and each name.
	Rand *rand.Rand
	// Sector is the number of bytes that the disk writes at once.
	Sector int
	// Keep is the probability that a sector is kept. Corrupt is the probability that a lost sector
	// holds neither the old nor the new content.
	Keep, Corrupt float64
}

// RandomSurvival returns a random Survival: everything kept, nothing, or any part.
func RandomSurvival(r *rand.Rand) Survival {
	pick := func(from ...float64) float64 { return from[r.IntN(len(from))] }
	return Survival{Rand: r, Sector: []int{512, 4096}[r.IntN(2)], Keep: pick(0, 0.1, 0.5, 0.9, 1), Corrupt: pick(0, 0, 0.2)}
}

func (f Survival) chance(likely float64) bool { return f.Rand.Float64() < likely }

// LosePower returns the content after a power loss that happens after a number of changes.
func (d *Disk) LosePower(moment int, fate Survival) Image {
	d.mu.Lock()
	log := d.log[:moment]
	d.mu.Unlock()
	p := diskState{survival: fate, kept: map[File][]byte{}, pending: map[File][]contentChange{}, names: map[string]File{}}
	for n, name := range slices.Sorted(maps.Keys(d.base)) {
		p.names[name] = File(n + 1)
		p.kept[File(n+1)] = slices.Clone(d.base[name])
	}
	for _, c := range log {
		p.apply(c)
	}
	p.flush()
	image := Image{}
	for name, file := range p.names {
		image[name] = p.kept[file]
	}
	return image
}

// diskState holds the durable content and the pending changes.
type diskState struct {
	survival Survival
	kept     map[File][]byte
	pending  map[File][]contentChange
	names    map[string]File
	renamed  []nameChange
}

func (p *diskState) apply(c change) {
	switch c := c.(type) {
	case writeChange:
		p.pending[c.file] = append(p.pending[c.file], c)
	case resizeChange:
		p.pending[c.file] = append(p.pending[c.file], c)
	case syncChange:
		p.settle(c.file, c.ok)
	case nameChange:
		p.renamed = append(p.renamed, c)
	case syncNamesChange:
		p.settleNames(true)
	}
}

// flush settles all pending changes.
func (p *diskState) flush() {
	for _, file := range slices.Sorted(maps.Keys(p.pending)) {
		p.settle(file, false)
	}
	p.settleNames(false)
}

// settle applies pending changes: all of them, or those that survive. Lost ones are discarded.
func (p *diskState) settle(file File, all bool) {
	data := p.kept[file]
	for _, e := range p.pending[file] {
		switch e := e.(type) {
		case writeChange:
			data = p.write(data, e, all)
		case resizeChange:
			if all || p.survival.chance(p.survival.Keep) {
				data = resize(data, e.size)
			}
		}
	}
	p.kept[file] = data
	delete(p.pending, file)
}

func (p *diskState) write(data []byte, w writeChange, all bool) []byte {
	if all {
		return put(data, w.off, w.data)
	}
	for off := 0; off < len(w.data); {
		at := w.off + int64(off)
		end := min(len(w.data), off+p.survival.Sector-int(at%int64(p.survival.Sector)))
		data = p.writeSector(data, at, w.data[off:end])
		off = end
	}
	return data
}

func (p *diskState) writeSector(data []byte, at int64, sector []byte) []byte {
	switch {
	case p.survival.chance(p.survival.Keep):
		return put(data, at, sector)
	case p.survival.chance(p.survival.Corrupt):
		return put(data, at, p.corrupt(sector))
	// the size was kept, the content was not
	case p.survival.chance(0.5) && int64(len(data)) < at+int64(len(sector)):
		return resize(data, at+int64(len(sector)))
	}
	return data
}

// corrupt returns a sector that was written partly, or that holds random bytes.
func (p *diskState) corrupt(sector []byte) []byte {
	spoilt := slices.Clone(sector)
	from := p.survival.Rand.IntN(len(spoilt))
	if p.survival.chance(0.5) {
		from = 0
	}
	for n := range spoilt[from:] {
		spoilt[from+n] = byte(p.survival.Rand.Uint32())
	}
	return spoilt
}

func (p *diskState) settleNames(all bool) {
	for _, c := range p.renamed {
		switch {
		case !all && !p.survival.chance(p.survival.Keep):
		case c.file == none:
			delete(p.names, c.name)
		default:
			p.names[c.name] = c.file
		}
	}
	p.renamed = nil
}

func put(data []byte, at int64, piece []byte) []byte {
	if end := at + int64(len(piece)); int64(len(data)) < end {
		data = resize(data, end)
	}
	copy(data[at:], piece)
	return data
}

func resize(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}
