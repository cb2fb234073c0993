package main

import (
	"os"
	"time"
)

// sideFsync is the lower bound: the time of the disk alone for as many fsyncs as a decision has
// transactions. No durable implementation can be faster.
const sideFsync = "disk"

const (
	fsyncPage         = 8 << 10 // the minimum size of a transaction's write
	fsyncsPerDecision = 2       // transactions of a decision
)

// fsyncAtPace writes pages to a file at the rate of decisions, and syncs each time. The file is
// preallocated, like the log of a database, so that only the pages are written.
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
