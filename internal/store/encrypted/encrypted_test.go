package encrypted_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// canary is part of every plaintext in these tests.
const canary = "canary"

func newKey(t *testing.T) seal.Key {
	t.Helper()
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newSealer(t *testing.T, current seal.Key, older ...seal.Key) *seal.Sealer {
	t.Helper()
	sealer, err := seal.New(current, older...)
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

func newStore(inner store.Store, sealer encrypted.Sealer) *encrypted.Store {
	s := encrypted.New(inner, sealer)
	s.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	return s
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func wantText(t *testing.T, what, want string, got []byte, err error) {
	t.Helper()
	if err != nil || string(got) != want {
		t.Errorf("%s = %q, %v; want %q", what, got, err, want)
	}
}

// doc returns a new document whose body contains the canary.
func doc(id string) store.DocumentChange {
	return store.DocumentChange{Kind: "note", ID: id, Body: []byte(canary + " body of " + id)}
}

func writes(id string) store.Writes { return store.Writes{Documents: []store.DocumentChange{doc(id)}} }

// fill calls every method that writes sealed values. It returns the lease of run r1.
func fill(t *testing.T, s *encrypted.Store) store.Lease {
	t.Helper()
	ctx := t.Context()
	lease := must(s.Create(ctx, store.NewRun{Account: "acme", ID: "r1", StateKey: "r1", ProviderRef: []byte(canary + " ref"),
		Input: []byte(canary + " input"), Owner: "w", Lease: time.Minute, Writes: writes("create")}))(t)
	if err := s.SetProviderRef(ctx, lease, []byte(canary+" ref 2")); err != nil {
		t.Fatal(err)
	}
	effect := store.NewEffect{Interrupt: "allowed", Attempt: 1, ActionDigest: "a", IdempotencyKey: "k", Writes: writes("begin"),
		Ruling: &store.PolicyRuling{Address: "n", Kind: "k", Data: []byte(canary + " data of allowed"), By: "p"}}
	if _, begun, err := s.BeginEffect(ctx, lease, effect); err != nil || !begun {
		t.Fatal(begun, err)
	}
	if err := s.EndEffect(ctx, store.EffectEnd{Account: "acme", Interrupt: "allowed", Attempt: 1, State: store.EffectSucceeded,
		Receipt: []byte(canary + " receipt"), Writes: writes("end")}); err != nil {
		t.Fatal(err)
	}
	if string(effect.Ruling.Data) != canary+" data of allowed" {
		t.Error("BeginEffect changed the ruling of its caller")
	}
	key := store.Key{Account: "acme", Run: "r1"}
	must(s.Fenced(lease).Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "a", Data: []byte(canary + " a")}, {Name: "nil"}}}))(t)
	must(s.EndExecution(ctx, lease, store.ExecutionEnd{
		Status: store.StatusWaiting, Outcome: []byte(canary + " outcome"), Writes: writes("rest"),
		Open: []store.NewInterrupt{{ID: "i1", Address: "n", Kind: "k", Data: []byte(canary + " data"), Timeout: time.Hour},
			{ID: "i2", Address: "m", Kind: "k", Data: []byte(canary + " data"), Timeout: time.Minute}},
		Checkpoint: &store.CheckpointSave{BaseVersion: 1, Delta: store.Delta{Put: []store.Part{{Name: "b", Data: []byte(canary + " b")}}}},
	}))(t)
	must(s.Decide(ctx, store.Decision{Account: "acme", Run: "r1", ResumeID: "d", Actor: "mia", Writes: writes("decide"),
		Answers: []store.Answer{{Interrupt: "i1", Verdict: store.VerdictAnswer, Data: []byte(canary + " answer")}}}))(t)
	if err := s.CommitWrites(ctx, "acme", writes("commit")); err != nil {
		t.Fatal(err)
	}
	if err := s.AddCredential(ctx, store.Credential{ID: "c", Account: "acme", Hash: []byte("h")}, writes("credential")); err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeCredential(ctx, "acme", "c", writes("revoke")); err != nil {
		t.Fatal(err)
	}
	wantText(t, "named value", canary+" value", must(s.PutIfAbsent(ctx, "name", []byte(canary+" value")))(t), nil)
	wantText(t, "named value of the second call", canary+" value", must(s.PutIfAbsent(ctx, "name", []byte("other")))(t), nil)
	return lease
}

// sealedValues returns all sealed values of a store.
func sealedValues(t *testing.T, inner store.Store) (values []store.SealedValue) {
	t.Helper()
	for after := ""; ; {
		next := must(inner.Reencrypt(t.Context(), after, 100, func(v store.SealedValue) ([]byte, error) {
			values = append(values, v)
			return nil, nil
		}))(t)
		if next == "" {
			return values
		}
		after = next
	}
}

func TestStore_WritesAreDecryptedByTheAccessors(t *testing.T) {
	s := newStore(memory.NewStore(time.Now), newSealer(t, newKey(t)))
	fill(t, s)
	history := must(s.History(t.Context(), "acme", "r1"))(t)
	read := func(what, want string) func([]byte, error) {
		return func(got []byte, err error) { t.Helper(); wantText(t, what, canary+" "+want, got, err) }
	}
	run := must(s.Get(t.Context(), "acme", "r1"))(t)
	read("Ref", "ref 2")(s.Ref(run))
	read("Input", "input")(s.Input(run))
	read("Outcome", "outcome")(s.Outcome("acme", "r1", run.Outcome))
	read("EffectReceipt", "receipt")(s.EffectReceipt(history.Effects[0]))
	for _, i := range history.Interrupts {
		switch i.ID {
		case "i1":
			read("Data", "data")(s.Data(i))
			read("Answer", "answer")(s.Answer(i))
		case "allowed":
			read("Data of the ruling", "data of allowed")(s.Data(i))
		}
	}
	for _, id := range []string{"create", "begin", "end", "rest", "decide", "commit", "credential", "revoke"} {
		read("Body", "body of "+id)(s.Body(must(s.Document(t.Context(), "acme", "note", id))(t)))
	}
	checkpoint := must(s.Load(t.Context(), store.Key{Account: "acme", Run: "r1"}))(t)
	want := map[string][]byte{"a": []byte(canary + " a"), "b": []byte(canary + " b"), "nil": {}}
	if checkpoint.Version != 2 || !reflect.DeepEqual(checkpoint.Parts, want) {
		t.Errorf("Load = %d %q, want 2 %q", checkpoint.Version, checkpoint.Parts, want)
	}
	if got, err := s.Input(store.Run{ID: "r1"}); got != nil || err != nil {
		t.Errorf("Input of a run without input = %q, %v; want nil", got, err)
	}
}

func TestStore_InnerStoreHasNoPlaintext(t *testing.T) {
	inner := memory.NewStore(time.Now)
	fill(t, newStore(inner, newSealer(t, newKey(t))))
	fields := map[store.SealedField]bool{}
	for _, v := range sealedValues(t, inner) {
		if fields[v.Field] = true; bytes.Contains(v.Data, []byte(canary)) {
			t.Errorf("the %s of %s is stored in plaintext", v.Field, v.ID)
		}
	}
	for _, field := range []store.SealedField{store.SealedRef, store.SealedInput, store.SealedOutcome, store.SealedPart, store.SealedData,
		store.SealedAnswer, store.SealedReceipt, store.SealedDocument, store.SealedNamedValue} {
		if !fields[field] {
			t.Errorf("no %s was stored", field)
		}
	}
}

func TestStore_CallersValuesStayUnchanged(t *testing.T) {
	s := newStore(memory.NewStore(time.Now), newSealer(t, newKey(t)))
	lease := must(s.Create(t.Context(), store.NewRun{Account: "acme", ID: "r", StateKey: "r", Owner: "w", Lease: time.Minute}))(t)
	end := func() store.ExecutionEnd {
		return store.ExecutionEnd{Status: store.StatusWaiting, Writes: writes("rest"),
			Open:       []store.NewInterrupt{{ID: "i", Address: "n", Kind: "k", Data: []byte("data")}},
			Checkpoint: &store.CheckpointSave{Delta: store.Delta{Put: []store.Part{{Name: "a", Data: []byte("a")}}}}}
	}
	decision := func() store.Decision {
		return store.Decision{Account: "acme", Run: "r", ResumeID: "d", Actor: "mia", Writes: writes("decide"),
			Answers: []store.Answer{{Interrupt: "i", Verdict: store.VerdictAnswer, Data: []byte("answer")}}}
	}
	e, d, w := end(), decision(), writes("commit")
	must(s.EndExecution(t.Context(), lease, e))(t)
	must(s.Decide(t.Context(), d))(t)
	if err := s.CommitWrites(t.Context(), "acme", w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(e, end()) || !reflect.DeepEqual(d, decision()) || !reflect.DeepEqual(w, writes("commit")) {
		t.Errorf("a method changed the values of its caller: %v %v %v", e, d, w)
	}
}

func TestStore_MovedValueReturnsErrUnreadable(t *testing.T) {
	s := newStore(memory.NewStore(time.Now), newSealer(t, newKey(t)))
	fill(t, s)
	run := must(s.Get(t.Context(), "acme", "r1"))(t)
	note := must(s.Document(t.Context(), "acme", "note", "commit"))(t)
	otherID, otherAccount, otherField := run, run, run
	otherID.ID, otherAccount.Account, otherField.Input = "r2", "other", run.ProviderRef
	otherKind, otherDocument := note, note
	otherKind.Kind, otherDocument.ID = "memo", "create"
	for name, read := range map[string]func() ([]byte, error){
		"run":      func() ([]byte, error) { return s.Input(otherID) },
		"account":  func() ([]byte, error) { return s.Input(otherAccount) },
		"field":    func() ([]byte, error) { return s.Input(otherField) },
		"kind":     func() ([]byte, error) { return s.Body(otherKind) },
		"document": func() ([]byte, error) { return s.Body(otherDocument) },
	} {
		before := s.Unreadable()
		if got, err := read(); !errors.Is(err, encrypted.ErrUnreadable) || got != nil || s.Unreadable() != before+1 {
			t.Errorf("%s: read = %q, %v, counter %d; want ErrUnreadable and counter %d", name, got, err, s.Unreadable(), before+1)
		}
	}
}

func TestCommitWrites_StoredBodyIsReencryptedOnlyIfTheKeyChanged(t *testing.T) {
	inner, oldKey, newerKey := memory.NewStore(time.Now), newKey(t), newKey(t)
	first := newStore(inner, newSealer(t, oldKey))
	for _, id := range []string{"a", "b"} {
		if err := first.CommitWrites(t.Context(), "acme", writes(id)); err != nil {
			t.Fatal(err)
		}
	}
	sealer := newSealer(t, newerKey, oldKey)
	second := newStore(inner, sealer)
	rewrite := func(id string, body []byte) store.Document {
		t.Helper()
		was := must(second.Document(t.Context(), "acme", "note", id))(t)
		if body == nil {
			body = was.Body
		}
		change := store.DocumentChange{Kind: "note", ID: id, BaseRevision: was.Revision, Body: body, Stored: true}
		if err := second.CommitWrites(t.Context(), "acme", store.Writes{Documents: []store.DocumentChange{change}}); err != nil {
			t.Fatal(err)
		}
		return must(second.Document(t.Context(), "acme", "note", id))(t)
	}
	reencrypted := rewrite("a", nil)
	got, err := second.Body(reencrypted)
	wantText(t, "re-encrypted body", canary+" body of a", got, err)
	if !sealer.Current(reencrypted.Body) {
		t.Error("a body of the old key was not re-encrypted")
	}
	if again := rewrite("a", nil); !bytes.Equal(again.Body, reencrypted.Body) {
		t.Error("a body of the current key was encrypted again")
	}
	if kept := rewrite("b", []byte("unreadable")); string(kept.Body) != "unreadable" {
		t.Errorf("an unreadable body became %q", kept.Body)
	}
}

func TestExpire_EncryptsTheWritesOfTheCallback(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newStore(memory.NewStore(func() time.Time { return now }), newSealer(t, newKey(t)))
	fill(t, s)
	now = now.Add(2 * time.Minute)
	expired := must(s.Expire(t.Context(), now, 10, func(i store.Interrupt, _ *store.Document) store.Writes { return writes("expire " + i.ID) }))(t)
	if len(expired) != 1 {
		t.Fatalf("%d interrupts expired, want 1", len(expired))
	}
	note := must(s.Document(t.Context(), "acme", "note", "expire i2"))(t)
	got, err := s.Body(note)
	wantText(t, "Body", canary+" body of expire i2", got, err)
	if bytes.Contains(note.Body, []byte(canary)) {
		t.Error("the body is stored in plaintext")
	}
}

func TestCancelAndDeleteRun_EncryptTheWrites(t *testing.T) {
	s := newStore(memory.NewStore(time.Now), newSealer(t, newKey(t)))
	fill(t, s)
	must(s.Cancel(t.Context(), "acme", "r1", store.StatusCancelled, nil, writes("cancel")))(t)
	if err := s.DeleteRun(t.Context(), "acme", "r1", writes("delete")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"cancel", "delete"} {
		got, err := s.Body(must(s.Document(t.Context(), "acme", "note", id))(t))
		wantText(t, "Body", canary+" body of "+id, got, err)
	}
}

func TestRetry_EncryptsTheWrites(t *testing.T) {
	s := newStore(memory.NewStore(time.Now), newSealer(t, newKey(t)))
	lease := must(s.Create(t.Context(), store.NewRun{Account: "acme", ID: "r", StateKey: "r", Owner: "w", Lease: time.Minute}))(t)
	if err := s.Release(t.Context(), lease, store.Release{Park: true}); err != nil {
		t.Fatal(err)
	}
	must(s.Retry(t.Context(), "acme", "r", writes("retry")))(t)
	got, err := s.Body(must(s.Document(t.Context(), "acme", "note", "retry"))(t))
	wantText(t, "Body", canary+" body of retry", got, err)
}

func TestCheckKey_OtherKeyReturnsErrWrongKey(t *testing.T) {
	inner, key := memory.NewStore(time.Now), newKey(t)
	for range 2 {
		if err := newStore(inner, newSealer(t, key)).CheckKey(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := newStore(inner, newSealer(t, newKey(t), key)).CheckKey(t.Context()); err != nil {
		t.Errorf("CheckKey with the key as an older one = %v", err)
	}
	if err := newStore(inner, newSealer(t, newKey(t))).CheckKey(t.Context()); !errors.Is(err, encrypted.ErrWrongKey) {
		t.Errorf("CheckKey with another key = %v, want ErrWrongKey", err)
	}
}

func TestReencryptAll_OldKeyIsNoLongerNeeded(t *testing.T) {
	inner, oldKey, current := memory.NewStore(time.Now), newKey(t), newKey(t)
	fill(t, newStore(inner, newSealer(t, oldKey)))
	s := newStore(inner, newSealer(t, current, oldKey))
	var last encrypted.ReencryptProgress
	sum := must(s.ReencryptAll(t.Context(), func(p encrypted.ReencryptProgress) { last = p }))(t)
	if sum.Seen == 0 || sum.Changed != sum.Seen || last != sum {
		t.Errorf("ReencryptAll = %+v, last progress %+v; want all changed", sum, last)
	}
	alone := newStore(inner, newSealer(t, current))
	if sum = must(alone.ReencryptAll(t.Context(), nil))(t); sum.Changed != 0 {
		t.Errorf("a second ReencryptAll changed %d values", sum.Changed)
	}
	got, err := alone.Input(must(alone.Get(t.Context(), "acme", "r1"))(t))
	wantText(t, "Input", canary+" input", got, err)
}

func TestReencryptAll_UnreadableValueIsKeptAndReported(t *testing.T) {
	inner, lost, current := memory.NewStore(time.Now), newKey(t), newKey(t)
	if err := newStore(inner, newSealer(t, lost)).CommitWrites(t.Context(), "acme", writes("lost")); err != nil {
		t.Fatal(err)
	}
	before := must(inner.Document(t.Context(), "acme", "note", "lost"))(t)
	sum, err := newStore(inner, newSealer(t, current)).ReencryptAll(t.Context(), nil)
	if err == nil || sum != (encrypted.ReencryptProgress{Seen: 1}) {
		t.Errorf("ReencryptAll = %+v, %v; want an error and one value that was seen", sum, err)
	}
	if after := must(inner.Document(t.Context(), "acme", "note", "lost"))(t); !bytes.Equal(before.Body, after.Body) {
		t.Error("ReencryptAll changed a value that it cannot decrypt")
	}
}

func TestKeyErr_MissingKeyFileIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := encrypted.CreateKeyFile(path); err != nil {
		t.Fatal(err)
	}
	sealer := must(encrypted.OpenKeyFile(path))(t)
	s := newStore(memory.NewStore(time.Now), sealer)
	if err := s.KeyErr(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.CommitWrites(t.Context(), "acme", writes("a")); err != nil {
		t.Fatal(err)
	}
	if err := sealer.(encrypted.KeyReloader).Err(); !reflect.DeepEqual(s.KeyErr(), err) {
		t.Errorf("KeyErr = %v, want %v", s.KeyErr(), err)
	}
	if err := newStore(memory.NewStore(time.Now), brokenKeys{newSealer(t, newKey(t))}).KeyErr(); !errors.Is(err, errBroken) {
		t.Errorf("KeyErr = %v, want the error of the sealer", err)
	}
	if err := newStore(memory.NewStore(time.Now), newSealer(t, newKey(t))).KeyErr(); err != nil {
		t.Errorf("KeyErr of a sealer without a key file = %v", err)
	}
}

var errBroken = errors.New("broken")

// brokenKeys is a sealer whose key source cannot be read.
type brokenKeys struct{ encrypted.Sealer }

func (brokenKeys) Err() error { return errBroken }

// readOnly is a store that this process may not write to.
type readOnly struct{ store.Store }

func (readOnly) CheckWritable(context.Context) error { return errBroken }

func TestCheckWritable_AsksTheInnerStore(t *testing.T) {
	sealer := newSealer(t, newKey(t))
	if err := newStore(readOnly{}, sealer).CheckWritable(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("CheckWritable = %v, want the error of the inner store", err)
	}
	if err := newStore(struct{ store.Store }{}, sealer).CheckWritable(t.Context()); err != nil {
		t.Errorf("CheckWritable of a store that cannot tell = %v, want nil", err)
	}
}
