package plugpull

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Image is what a directory holds, by name.
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

// Fate is what becomes of that which was not synced.
type Fate struct {
	// Rand decides for each sector, and each name.
	Rand *rand.Rand
	// Sector is how many bytes the disk writes at once.
	Sector int
	// Keep is how likely a sector is kept, Spoil how likely one that is not holds neither what was there nor what was written.
	Keep, Spoil float64
}

// Draw returns some fate: everything kept, nothing, or any part.
func Draw(r *rand.Rand) Fate {
	pick := func(from ...float64) float64 { return from[r.IntN(len(from))] }
	return Fate{Rand: r, Sector: []int{512, 4096}[r.IntN(2)], Keep: pick(0, 0.1, 0.5, 0.9, 1), Spoil: pick(0, 0, 0.2)}
}

func (f Fate) happens(likely float64) bool { return f.Rand.Float64() < likely }

// Pull returns what is there when power comes back, if it was lost after so many changes.
func (d *Disk) Pull(moment int, fate Fate) Image {
	d.mu.Lock()
	log := d.log[:moment]
	d.mu.Unlock()
	p := platter{fate: fate, kept: map[File][]byte{}, pending: map[File][]edit{}, names: map[string]File{}}
	for n, name := range slices.Sorted(maps.Keys(d.base)) {
		p.names[name] = File(n + 1)
		p.kept[File(n+1)] = slices.Clone(d.base[name])
	}
	for _, c := range log {
		p.take(c)
	}
	p.flush()
	image := Image{}
	for name, file := range p.names {
		image[name] = p.kept[file]
	}
	return image
}

// platter is what is kept for sure, and what may be.
type platter struct {
	fate    Fate
	kept    map[File][]byte
	pending map[File][]edit
	names   map[string]File
	renamed []named
}

func (p *platter) take(c change) {
	switch c := c.(type) {
	case wrote:
		p.pending[c.file] = append(p.pending[c.file], c)
	case resized:
		p.pending[c.file] = append(p.pending[c.file], c)
	case synced:
		p.settle(c.file, c.ok)
	case named:
		p.renamed = append(p.renamed, c)
	case syncedNames:
		p.settleNames(true)
	}
}

// flush is the end.
func (p *platter) flush() {
	for _, file := range slices.Sorted(maps.Keys(p.pending)) {
		p.settle(file, false)
	}
	p.settleNames(false)
}

// settle keeps what is pending, all of it or whatever fate says. What is lost is not pending any more.
func (p *platter) settle(file File, all bool) {
	data := p.kept[file]
	for _, e := range p.pending[file] {
		switch e := e.(type) {
		case wrote:
			data = p.write(data, e, all)
		case resized:
			if all || p.fate.happens(p.fate.Keep) {
				data = resize(data, e.size)
			}
		}
	}
	p.kept[file] = data
	delete(p.pending, file)
}

func (p *platter) write(data []byte, w wrote, all bool) []byte {
	if all {
		return put(data, w.off, w.data)
	}
	for off := 0; off < len(w.data); {
		at := w.off + int64(off)
		end := min(len(w.data), off+p.fate.Sector-int(at%int64(p.fate.Sector)))
		data = p.writeSector(data, at, w.data[off:end])
		off = end
	}
	return data
}

func (p *platter) writeSector(data []byte, at int64, sector []byte) []byte {
	switch {
	case p.fate.happens(p.fate.Keep):
		return put(data, at, sector)
	case p.fate.happens(p.fate.Spoil):
		return put(data, at, p.spoil(sector))
	case p.fate.happens(0.5) && int64(len(data)) < at+int64(len(sector)): // the size was kept, what is there was not
		return resize(data, at+int64(len(sector)))
	}
	return data
}

// spoil returns a sector that was written up to some byte, or in which nothing is right.
func (p *platter) spoil(sector []byte) []byte {
	spoilt := slices.Clone(sector)
	from := p.fate.Rand.IntN(len(spoilt))
	if p.fate.happens(0.5) {
		from = 0
	}
	for n := range spoilt[from:] {
		spoilt[from+n] = byte(p.fate.Rand.Uint32())
	}
	return spoilt
}

func (p *platter) settleNames(all bool) {
	for _, c := range p.renamed {
		switch {
		case !all && !p.fate.happens(p.fate.Keep):
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
