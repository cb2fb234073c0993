package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The WAL is begun anew when all of it is in the file and nobody reads from it. Where readers come one upon the other there is no such moment, and it would grow
// for as long as they come. So when it is big, those who write wait for the readers who are there; whoever comes meanwhile reads from the file.

const (
	// walLimit is when the WAL is to be begun anew, and what is left of it on disk then.
	walLimit = 64 << 20

	// walWait is how long those who write wait for readers. A backup reads for longer; then it is tried again when the WAL is bigger by as much.
	walWait = time.Second
)

// walFile is the side file.
type walFile struct {
	path string // "" if it is nowhere that the host knows of
	left int64  // how big it was when it was last to be begun anew; 0 if it is not big
}

func newWALFile(path string) walFile {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return walFile{}
	}
	return walFile{path: file + "-wal"}
}

// beginWAL begins a WAL anew that is big. What goes wrong here the next write finds out.
func (s *Store) resetWAL() {
	info, err := os.Stat(s.wal.path)
	if err != nil || info.Size() <= walLimit {
		s.wal.left = 0
		return
	}
	if info.Size() > s.wal.left+walLimit {
		s.wal.left = info.Size()
		s.checkpointWAL(context.Background(), "RESTART", walWait)
	}
}

// checkpointWAL brings the WAL into the file, as far as readers of an old state let it for as long as it waits.
func (s *Store) checkpointWAL(ctx context.Context, mode string, patience time.Duration) error {
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	waits := func(ctx context.Context, patience time.Duration) error {
		return drain(ctx, conn, fmt.Sprintf(`PRAGMA busy_timeout = %d`, patience.Milliseconds()))
	}
	if err = waits(ctx, patience); err == nil {
		err = drain(ctx, conn, `PRAGMA wal_checkpoint(`+mode+`)`)
	}
	return errors.Join(err, waits(context.WithoutCancel(ctx), busyTimeout), conn.Close())
}
