package executor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// turning is a sealer whose keys change while it is used, like those of a key file.
type turning struct{ now atomic.Pointer[seal.Sealer] }

func (b *turning) Seal(label string, data []byte) []byte { return b.now.Load().Seal(label, data) }
func (b *turning) Open(label string, sealed []byte) ([]byte, error) {
	return b.now.Load().Open(label, sealed)
}
func (b *turning) Current(sealed []byte) bool { return b.now.Load().Current(sealed) }

// Regression: the key changed during a slow delivery. The notice was then written back as it had
// been read, encrypted with the old key, after the re-encryption. It was unreadable once the old
// key was deleted.
func TestReencrypt_DocumentWrittenBackIsEncryptedWithTheNewKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, keys := memory.NewStore(nil), new(turning)
		keys.now.Store(boxOf(t, 1))
		asked, taken := make(chan struct{}, 1), make(chan struct{})
		e := new(dropper).executor(t, s, func(c *executor.Config) {
			c.Sealer, c.Poll = keys, time.Second
			c.Desk.Channels = []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error {
				select {
				case asked <- struct{}{}:
				default: // another notice
				}
				<-taken
				return nil
			})}
		})
		e.StartWorkers()
		waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`))
		<-asked
		keys.now.Store(boxOf(t, 2, 1))
		if _, err := e.Reencrypt(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		close(taken)
		time.Sleep(time.Minute)
		synctest.Wait()
		if papers := papersOf(t, s, "acme", "delivery"); len(papers) == 0 || papers[0].Revision < 3 {
			t.Fatalf("no notice was delivered: %+v", papers)
		}
		if sum, err := e.Reencrypt(t.Context(), nil); err != nil || sum.Changed != 0 {
			t.Errorf("%d values had the old key again, %v", sum.Changed, err)
		}
	})
}
