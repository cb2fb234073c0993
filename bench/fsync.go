package main

import (
	"os"
	"time"
)

// sideFsync is nobody's: what the disk alone takes for as many waits as a decision has transactions. Nobody can be faster who promises to keep what was decided.
const sideFsync = "disk"

const (
	fsyncPage         = 8 << 10 // what a transaction writes at least
	fsyncsPerDecision = 2       // transactions of a decision
)

// fsyncAtPace writes pages to a file at the pace of decisions, and waits for the disk each time. There is room for all of them in the file before, as in
// the log of a database, so that nothing but the pages has to be written.
func fsyncAtPace(pace float64, count int) (_ []time.Duration, err error) {
	f, err := os.CreateTemp("", "fermata-bench-disk-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(make([]byte, count*fsyncsPerDecision*fsyncPage)); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	page := make([]byte, fsyncPage)
	for i := range page {
		page[i] = byte(i)
	}
	return atPace(pace, count, func(n int) error {
		for wait := range fsyncsPerDecision {
			if _, err := f.WriteAt(page, int64(n*fsyncsPerDecision+wait)*fsyncPage); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
		}
		return nil
	})
}
