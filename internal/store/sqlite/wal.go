package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// SQLite resets the WAL when all of it is in the file and there are no readers. With continuous
// readers that never happens, and the WAL would grow without bound. So when it is big, writers wait
// for the current readers; new readers read from the file.

const (
	// walLimit is the size at which the WAL is reset, and the size that is left on disk.
	walLimit = 64 << 20

	// walWait is how long writers wait for readers. A backup reads for longer; then the reset is
	// retried when the WAL has grown by the same amount again.
	walWait = time.Second
)

// walFile is the side file.
type walFile struct {
	path string // "" if the path is unknown
	left int64  // its size at the last attempt to reset it; 0 if it is small
}

func newWALFile(path string) walFile {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return walFile{}
	}
	return walFile{path: file + "-wal"}
}

// resetWAL resets a big WAL. The next write reports errors.
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

// checkpointWAL moves the WAL into the file, as far as readers of an old snapshot allow within the
// wait.
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
	return errors.Join(err, waits(context.WithoutCancel(ctx), s.patience), conn.Close())
}
