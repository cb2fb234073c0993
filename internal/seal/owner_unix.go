//go:build unix

package seal

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives a file to whom the one belongs that it takes the place of. Keys are changed by an administrator, and read by the user of
// the server: one who cannot read the new file would go on sealing with a key that nobody has any more.
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
		return fmt.Errorf("box: the key file %s belongs to another user, who could not read a new one: change the key as that user, or as root: %w", filepath.Base(old), err)
	}
	return nil
}
