package main

import (
	"os"
	"time"
)

// sideDisk is nobody's: what the disk alone takes for as many waits as a decision has transactions. Nobody can be faster who promises to keep what was decided.
const sideDisk = "disk"

const (
	diskPage  = 8 << 10 // what a transaction writes at least
	diskWaits = 2       // transactions of a decision
)

// diskSteadily writes pages to a file at the pace of decisions, and waits for the disk each time. There is room for all of them in the file before, as in
// the log of a database, so that nothing but the pages has to be written.
func diskSteadily(pace float64, count int) (_ []time.Duration, err error) {
	f, err := os.CreateTemp("", "fermata-bench-disk-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(make([]byte, count*diskWaits*diskPage)); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	page := make([]byte, diskPage)
	for i := range page {
		page[i] = byte(i)
	}
	return steadily(pace, count, func(n int) error {
		for wait := range diskWaits {
			if _, err := f.WriteAt(page, int64(n*diskWaits+wait)*diskPage); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
		}
		return nil
	})
}
