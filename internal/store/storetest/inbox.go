package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/store"
)

// testInboxItems lists the interrupts of several runs, in pages and filtered.
func testInboxItems(t *testing.T, h *storeTester) {
	h.waiting("r1", "a", "b")
	h.waiting("r2", "c")
	h.waiting("r3", "d")
	h.waiting("r4", "e", "f")
	h.wantResult(approve("r1", "1", "b"), store.ResultAccepted)
	_, err := h.store.Cancel(h.ctx(), "acme", "r3", store.StatusCancelled, nil, store.Writes{})
	h.must(err)
	ids := func(filter store.InboxFilter) (all []string) {
		for {
			list, err := h.store.InboxItems(h.ctx(), "acme", filter)
			h.must(err)
			if len(list) == 0 {
				return all
			}
			for _, a := range list {
				if a.StateKey != "key-"+a.Run || a.Provider != "inproc" || a.Graph != "g" || a.Account != "acme" {
					t.Errorf("it belongs to %+v", a)
				}
				all = append(all, a.ID)
			}
			bound := &filter.After
			if filter.Newest {
				bound = &filter.Before
			}
			*bound = filter.Position(list[len(list)-1].Interrupt)
		}
	}
	h.wantResult(approve("r4", "2", "e"), store.ResultAccepted)
	h.wantResult(approve("r1", "3", "a"), store.ResultAccepted) // after those that became visible later
	for state, want := range map[store.InterruptState]string{"": "[a b c d e f]", store.InterruptPending: "[c f]", store.InterruptDecided: "[b e a]"} {
		reversed := strings.Fields(strings.Trim(want, "[]"))
		slices.Reverse(reversed)
		for limit := range 4 {
			if got := fmt.Sprint(ids(store.InboxFilter{State: state, Limit: limit})); got != want {
				t.Errorf("%s in pages of %d: %s", state, limit, got)
			}
			if got := ids(store.InboxFilter{State: state, Limit: limit, Newest: true}); !slices.Equal(got, reversed) {
				t.Errorf("%s in pages of %d, newest first: %s", state, limit, got)
			}
		}
	}
	pending := store.InboxFilter{State: store.InterruptPending}
	for kind, want := range map[string]string{"another": "[]", h.interrupt("r1", "a").Kind: "[c f]"} {
		pending.Kind = kind
		if got := fmt.Sprint(ids(pending)); got != want {
			t.Errorf("of the kind %s: %s", kind, got)
		}
	}
	all := store.InboxFilter{After: store.InboxFilter{}.Position(h.interrupt("r1", "b")), Before: store.InboxFilter{}.Position(h.interrupt("r4", "e"))}
	if got := fmt.Sprint(ids(all)); got != "[c d]" {
		t.Errorf("between b and e: %s", got)
	}
	for _, unserved := range []store.InboxFilter{{State: store.InterruptWithdrawn}, {Kind: "k"}, {State: store.InterruptDecided, Kind: "k"}, {State: "?"}} {
		_, err := h.store.InboxItems(h.ctx(), "acme", unserved)
		h.wantErr(err, store.ErrInvalid)
	}
	if list, err := h.store.InboxItems(h.ctx(), "other", store.InboxFilter{}); err != nil || len(list) != 0 {
		t.Errorf("another account sees %v, %v", list, err)
	}
}

func testInboxItem(t *testing.T, h *storeTester) {
	h.waiting("r1", "a", "b")
	got, err := h.store.InboxItem(h.ctx(), "acme", "b")
	h.must(err)
	want := store.InboxItem{Interrupt: h.interrupt("r1", "b"), StateKey: "key-r1", Provider: "inproc", Graph: "g"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	h.must(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{
		{Kind: store.RequestDocument, ID: "b", Run: "r1", Body: []byte("review"), Index: []byte(`{"n":1}`)}, {Kind: "vote", ID: "a", Run: "r1", Body: []byte("yes")},
	}}))
	request := h.document(store.RequestDocument, "b")
	want.Request = &request
	if got, err = h.store.InboxItem(h.ctx(), "acme", "b"); err != nil || !cmp.Equal(want, got) {
		t.Errorf("with its request: %s, %v", cmp.Diff(want, got), err)
	}
	for _, state := range []store.InterruptState{"", store.InterruptPending} {
		list, err := h.store.InboxItems(h.ctx(), "acme", store.InboxFilter{State: state})
		if err != nil || len(list) != 2 || list[0].Request != nil || !cmp.Equal(list[1], want) {
			t.Errorf("in a list each must have its own request: %+v, %v", list, err)
		}
	}
	_, err = h.store.InboxItem(h.ctx(), "acme", "c")
	h.wantErr(err, store.ErrNotFound)
	_, err = h.store.InboxItem(h.ctx(), "other", "b")
	h.wantErr(err, store.ErrNotFound)
	for limit, want := range map[int]int{1: 1, 2: 2, 100: 2} {
		if n, err := h.store.CountPending(h.ctx(), "acme", nil, limit); err != nil || n != want {
			t.Errorf("up to %d: %d, %v", limit, n, err)
		}
	}
	for kind, want := range map[string]int{got.Kind: 0, "other": 2} {
		if n, err := h.store.CountPending(h.ctx(), "acme", []string{"another", kind}, 10); err != nil || n != want {
			t.Errorf("without the kind %q: %d, %v", kind, n, err)
		}
	}
	if n, err := h.store.CountPending(h.ctx(), "other", nil, 10); err != nil || n != 0 {
		t.Errorf("another account has %d, %v", n, err)
	}
}

// testPendingByKind counts the pending interrupts of all accounts by kind.
func testPendingByKind(t *testing.T, h *storeTester) {
	waits := func(limit int) (all []store.PendingCount) {
		all, err := h.store.PendingByKind(h.ctx(), limit)
		h.must(err)
		return all
	}
	if got := waits(10); len(got) != 0 {
		t.Errorf("nothing is open, but %v is pending", got)
	}
	h.waiting("r1", "a", "b")
	first := h.interrupt("r1", "a").Created
	h.waiting("r2", "c")
	h.waiting("r3", "d")
	h.wantResult(approve("r1", "1", "b"), store.ResultAccepted)
	_, err := h.store.Cancel(h.ctx(), "acme", "r3", store.StatusCancelled, nil, store.Writes{})
	h.must(err)
	for limit, count := range map[int]int64{1: 1, 2: 2, 100: 2} {
		if diff := cmp.Diff([]store.PendingCount{{Kind: h.interrupt("r1", "a").Kind, Count: count, Oldest: first}}, waits(limit)); diff != "" {
			t.Errorf("of %d: %s", limit, diff)
		}
	}
}

func testCredentials(t *testing.T, h *storeTester) {
	s := h.store
	expires := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, c := range []store.Credential{
		{ID: "k1", Account: "acme", Name: "robot\x00", Role: "agent", Hash: []byte{1, 0, 255}},
		{ID: "k2", Account: "acme", Name: "ann", Role: "approver", Hash: []byte{2}, Expires: expires},
		{ID: "k3", Account: "other", Name: "bob", Role: "admin", Hash: []byte{3}},
	} {
		h.must(s.AddCredential(h.ctx(), c, store.Writes{}))
	}
	h.wantErr(s.AddCredential(h.ctx(), store.Credential{ID: "k1", Account: "other", Name: "mallory", Role: "admin", Hash: []byte{9}}, store.Writes{}), store.ErrExists)
	h.wantErr(s.AddCredential(h.ctx(), store.Credential{Account: "other"}, store.Writes{}), store.ErrInvalid)
	got, err := s.Credential(h.ctx(), "k2")
	h.must(err)
	if got.Created.IsZero() {
		t.Error("the creation time is missing")
	}
	got.Created = time.Time{}
	if diff := cmp.Diff(store.Credential{ID: "k2", Account: "acme", Name: "ann", Role: "approver", Hash: []byte{2}, Expires: expires}, got); diff != "" {
		t.Error(diff)
	}
	_, err = s.Credential(h.ctx(), "k4")
	h.wantErr(err, store.ErrNotFound)
	h.wantErr(s.RevokeCredential(h.ctx(), "other", "k1", store.Writes{}), store.ErrNotFound)
	h.must(s.RevokeCredential(h.ctx(), "acme", "k1", store.Writes{}))
	revoked, err := s.Credential(h.ctx(), "k1")
	h.must(err)
	h.must(s.RevokeCredential(h.ctx(), "acme", "k1", store.Writes{}))
	again, err := s.Credential(h.ctx(), "k1")
	h.must(err)
	if revoked.Revoked.IsZero() || !again.Revoked.Equal(revoked.Revoked) {
		t.Errorf("it was revoked at %v, and then at %v", revoked.Revoked, again.Revoked)
	}
	list, err := s.Credentials(h.ctx(), "acme")
	h.must(err)
	if len(list) != 2 || list[0].Account != "acme" || list[1].Account != "acme" {
		t.Errorf("the account has %+v", list)
	}
}

// An audit line is written with its change: once if it was made, and not at all otherwise.
func testCredentialsAudit(t *testing.T, h *storeTester) {
	s := h.store
	says := func(word string) store.Writes {
		return store.Writes{Audit: [][]byte{fmt.Appendf(nil, `{"did":%q}`, word)}}
	}
	bad := store.Writes{Audit: [][]byte{[]byte("no object")}}
	key := store.Credential{ID: "k1", Account: "acme", Name: "robot", Role: "agent", Hash: []byte{1}}
	h.wantErr(s.AddCredential(h.ctx(), key, bad), store.ErrInvalid)
	h.must(s.AddCredential(h.ctx(), key, says("made")))
	h.wantErr(s.AddCredential(h.ctx(), key, says("made again")), store.ErrExists)
	h.wantErr(s.RevokeCredential(h.ctx(), "other", "k1", says("ended by others")), store.ErrNotFound)
	h.wantErr(s.RevokeCredential(h.ctx(), "acme", "k1", bad), store.ErrInvalid)
	h.must(s.RevokeCredential(h.ctx(), "acme", "k1", says("ended")))
	h.must(s.RevokeCredential(h.ctx(), "acme", "k1", says("ended again")))
	lines, err := s.AuditLines(h.ctx(), "acme", 0, 0)
	h.must(err)
	if len(lines) != 2 || !bytes.Contains(lines[0].Raw, []byte(`"did":"made"`)) || !bytes.Contains(lines[1].Raw, []byte(`"did":"ended"`)) {
		t.Errorf("the log has %v", lines)
	}
	if lines, err = s.AuditLines(h.ctx(), "other", 0, 0); err != nil || len(lines) > 0 {
		t.Errorf("others have %v, %v", lines, err)
	}
}

// Ended credentials with the prefix are deleted: not valid ones, not ones that ended later, and no
// API keys.
func testPurgeCredentials(t *testing.T, h *storeTester) {
	s, now := h.store, h.now()
	const prefix = "web_\xff"
	past, future := now.Add(-time.Hour), now.Add(time.Hour)
	for id, expires := range map[string]time.Time{
		prefix + "past": past, prefix + "revoked": future, prefix + "for ever": {}, prefix + "later": future,
		"web": past, "web_": past, "web_\xfe": past, "xeb": past, "key": past, // adjacent ids
	} {
		h.must(s.AddCredential(h.ctx(), store.Credential{ID: id, Account: "account of " + id, Hash: []byte{1}, Expires: expires}, store.Writes{}))
	}
	h.must(s.RevokeCredential(h.ctx(), "account of "+prefix+"revoked", prefix+"revoked", store.Writes{}))
	forget := func(before time.Time, limit, want int) {
		t.Helper()
		got, err := s.PurgeCredentials(h.ctx(), prefix, before, limit)
		h.must(err)
		if got != want {
			t.Errorf("%d were deleted, want %d", got, want)
		}
	}
	forget(past, 10, 0)
	forget(past.Add(time.Minute), 10, 1)
	_, err := s.Credential(h.ctx(), prefix+"past")
	h.wantErr(err, store.ErrNotFound)
	forget(now.Add(time.Minute), 0, 0)
	forget(now.Add(time.Minute), 10, 1)
	_, err = s.Credential(h.ctx(), prefix+"revoked")
	h.wantErr(err, store.ErrNotFound)
	for _, id := range []string{prefix + "for ever", prefix + "later", "web", "web_", "web_\xfe", "xeb", "key"} {
		if _, err := s.Credential(h.ctx(), id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	h.must(s.RevokeCredential(h.ctx(), "account of "+prefix+"for ever", prefix+"for ever", store.Writes{}))
	forget(future.Add(time.Minute), 1, 1) // at most the limit
	forget(future.Add(time.Minute), 1, 1)
	forget(future.Add(time.Minute), 1, 0)
	// the id can be used again
	h.must(s.AddCredential(h.ctx(), store.Credential{ID: prefix + "past", Account: "acme", Hash: []byte{1}}, store.Writes{}))
}
