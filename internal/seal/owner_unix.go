//go:build unix

package seal

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives a new file the owner of the file that it replaces. An administrator rotates keys,
// and the user of the server reads them. A server that cannot read the new file would keep sealing
// with a key that is removed later.
func keepOwner(name, old string) error {
	is, err := os.Stat(name)
	if err != nil {
		return err
	}
	was, err := os.Stat(old)
	if err != nil {
		return err
	}
	from, ok := is.Sys().(*syscall.Stat_t)
	to, ok2 := was.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || from.Uid == to.Uid {
		return nil
	}
	if err := os.Chown(name, int(to.Uid), int(to.Gid)); err != nil {
		return fmt.Errorf("seal: key file %s belongs to another user, who could not read a new file: rotate the key as that user or as root: %w", filepath.Base(old), err)
	}
	return nil
}
