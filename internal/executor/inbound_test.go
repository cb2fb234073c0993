package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// A click is stored once, and processed until the receiver succeeds, also after a restart.
func TestInbound_IsProcessedUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		change := func(c *executor.Config) { c.Poll = time.Second }
		e := new(dropper).executor(t, s, change)
		click := channel.Inbound{Account: "acme", ID: "click-1", Body: json.RawMessage(`{"value":"approve"}`)}
		for range 2 {
			if err := e.AcceptInbound(t.Context(), "slack", click); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		var got []channel.Inbound
		other := new(dropper).executor(t, s, change) // another process
		for _, e := range []*executor.Executor{e, other} {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go e.ReceiveInbound(ctx, func(_ context.Context, kind string, in channel.Inbound) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, in)
				if kind != "slack" || len(got) < 3 {
					return errors.New("the API is not available")
				}
				return nil
			})
		}
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 3 || got[2].ID != "click-1" || got[2].Attempt != 3 || string(got[2].Body) != `{"value":"approve"}` || got[2].Account != "acme" {
			t.Errorf("processed %+v", got)
		}
	})
}

// person returns a signed-in person.
func person(id string) desk.From {
	return desk.From{Actor: desk.PersonActor(id, requirement.AuthSSO), Via: "http/oidc"}
}

func TestChannelLink_TokenIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(dropper).executor(t, memory.NewStore(nil), func(*executor.Config) {})
		sender := channel.Sender{Account: "acme", Channel: "slack", ID: "T1/U1", Name: "ann"}
		if _, err := e.ChannelLink(t.Context(), sender); !errors.Is(err, channel.ErrNotLinked) {
			t.Fatalf("before the link: %v", err)
		}
		token, err := e.NewLinkToken(t.Context(), sender)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.UseLinkToken(t.Context(), "other", token, person("eve"), nil); !errors.Is(err, executor.ErrLinkInvalid) {
			t.Errorf("I8: another account used the token: %v", err)
		}
		if _, err := e.UseLinkToken(t.Context(), "acme", token, person("ann@acme"), []string{"approver"}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.UseLinkToken(t.Context(), "acme", token, person("eve"), nil); !errors.Is(err, executor.ErrLinkInvalid) {
			t.Errorf("the token was used twice: %v", err)
		}
		link, err := e.ChannelLink(t.Context(), sender)
		if err != nil || link.Principal != "ann@acme" {
			t.Errorf("link %+v, %v", link, err)
		}
		if _, err := e.ChannelLink(t.Context(), channel.Sender{Account: "acme", Channel: "slack", ID: "T2/U1"}); !errors.Is(err, channel.ErrNotLinked) {
			t.Errorf("another workspace: %v", err)
		}
		late, err := e.NewLinkToken(t.Context(), sender)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Minute)
		if _, err := e.UseLinkToken(t.Context(), "acme", late, person("eve"), nil); !errors.Is(err, executor.ErrLinkInvalid) {
			t.Errorf("an expired token was used: %v", err)
		}
		if err := e.RevokeChannelLink(t.Context(), sender, "eve", person("eve")); !errors.Is(err, channel.ErrNotLinked) {
			t.Errorf("another person revoked the link: %v", err)
		}
		if err := e.RevokeChannelLink(t.Context(), sender, "ann@acme", person("ann@acme")); err != nil {
			t.Fatal(err)
		}
		if _, err := e.ChannelLink(t.Context(), sender); !errors.Is(err, channel.ErrNotLinked) {
			t.Errorf("after the link was revoked: %v", err)
		}
	})
}

// I12: linking and unlinking an account write one audit record each, in the same transaction. What
// is refused writes none.
func TestChannelLink_IsAudited(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		failing := &linkStore{Store: s}
		e := new(dropper).executor(t, failing, func(*executor.Config) {})
		sender := channel.Sender{Account: "acme", Channel: "email", ID: "ann@example.com", Name: "ann"}
		token, err := e.NewLinkToken(t.Context(), sender)
		if err != nil {
			t.Fatal(err)
		}
		failing.fail = true
		if _, err := e.UseLinkToken(t.Context(), "acme", token, person("ann@acme"), nil); !errors.Is(err, errCommit) {
			t.Fatalf("the transaction did not fail: %v", err)
		}
		if _, err := e.ChannelLink(t.Context(), sender); !errors.Is(err, channel.ErrNotLinked) || len(lines(t, s)) > 0 {
			t.Fatalf("after a transaction that failed: %v, %v", err, lines(t, s))
		}
		failing.fail = false
		link, err := e.UseLinkToken(t.Context(), "acme", token, person("ann@acme"), []string{"approver"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.UseLinkToken(t.Context(), "acme", token, person("eve"), nil); !errors.Is(err, executor.ErrLinkInvalid) {
			t.Errorf("the token was used twice: %v", err)
		}
		if err := e.RevokeChannelLink(t.Context(), sender, "eve", person("eve")); !errors.Is(err, channel.ErrNotLinked) {
			t.Errorf("another person revoked the link: %v", err)
		}
		if err := e.RevokeChannelLink(t.Context(), sender, "ann@acme", person("ann@acme")); err != nil {
			t.Fatal(err)
		}
		kept, err := s.AuditLines(t.Context(), "acme", 0, 10)
		if err != nil || len(kept) != 2 {
			t.Fatalf("%d records, %v", len(kept), err)
		}
		id := executor.ChannelLinkID(link)
		for i, want := range []audit.Body{
			audit.ChannelLinked{Link: id, Channel: "email", Roles: []string{"approver"}, Until: audit.TimestampOf(link.Until)},
			audit.ChannelUnlinked{Link: id, Channel: "email", Principal: "ann@acme"},
		} {
			got, err := audit.Parse(kept[i].Raw)
			by := audit.Actor{Principal: "ann@acme", Kind: audit.ActorPerson, Via: "http/oidc", Auth: string(requirement.AuthSSO)}
			if diff := cmp.Diff(want, got.Body); err != nil || diff != "" || got.Actor != by {
				t.Errorf("%s: %s, %v", kept[i].Raw, diff, err)
			}
			if strings.Contains(string(kept[i].Raw), "example.com") {
				t.Errorf("I7: the log has an address: %s", kept[i].Raw)
			}
		}
	})
}

var errCommit = errors.New("the disk is full")

// linkStore fails transactions.
type linkStore struct {
	store.Store
	fail bool
}

func (s *linkStore) CommitWrites(ctx context.Context, account string, w store.Writes) error {
	if s.fail {
		return errCommit
	}
	return s.Store.CommitWrites(ctx, account, w)
}
