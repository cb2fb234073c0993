package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/fermata-go/fermata/internal/audit"
)

func trustIn(t testing.TB, key *audit.Key, head audit.Head) audit.Trust {
	t.Helper()
	trust, err := key.Trust(head.Origin())
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

func TestCheckpoint_IsC2SPSignedNote(t *testing.T) {
	key, head := audit.NewKey(), newLog(t, "acme", 7).head
	c, err := key.Sign(head)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := key.Verifier(head.Origin())
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(verifier)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := note.Open(c.Note, note.VerifierList(v))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%s\n7\n%s\n", head.Origin(), head.Root()); opened.Text != want {
		t.Errorf("the text is %q; want %q", opened.Text, want)
	}
	if opened.Sigs[0].Name != head.Origin() {
		t.Errorf("it is signed as %s; the key name must be the origin", opened.Sigs[0].Name)
	}
	got, err := trustIn(t, key, head).Open(c.Note)
	if err != nil || got.Origin != head.Origin() || got.Size != 7 || got.Root != head.Root() {
		t.Errorf("Open = %+v, %v", got, err)
	}
}

// A checkpoint may be published. It must not reveal the account, not even to someone with a list of
// all accounts.
func TestCheckpoint_OriginDoesNotRevealAccount(t *testing.T) {
	one, two := memoryLog(t, "acme"), memoryLog(t, "acme")
	for _, m := range []*audit.Memory{one, two} {
		if _, err := m.Append(t.Context(), "acme", audit.NewRecord(noon, self, audit.Location{}, audit.RunStarted{Provider: "inproc"})); err != nil {
			t.Fatal(err)
		}
	}
	a, _ := one.Head(t.Context(), "acme")
	b, _ := two.Head(t.Context(), "acme")
	if a.Origin() == b.Origin() {
		t.Error("the origin is predictable from the account and the first record")
	}
	if strings.Contains(a.Origin(), "acme") {
		t.Error("the origin contains the account")
	}
}

func TestSign_EmptyLogReturnsErrEmpty(t *testing.T) {
	if _, err := audit.NewKey().Sign(audit.EmptyHead("acme")); !errors.Is(err, audit.ErrEmpty) {
		t.Errorf("Sign = %v; want ErrEmpty", err)
	}
}

func TestTrust_ChangedCheckpointByteIsRefused(t *testing.T) {
	key, head := audit.NewKey(), newLog(t, "acme", 7).head
	trust := trustIn(t, key, head)
	c, err := key.Sign(head)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Note {
		bad := bytes.Clone(c.Note)
		bad[i] ^= 1
		if got, err := trust.Open(bad); err == nil {
			t.Errorf("byte %d changed, but it was opened as %+v", i, got)
		}
	}
	// some bits are unused, and a lenient decoder ignores them
	last := bytes.LastIndexByte(c.Note, '=') - 1
	for _, other := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		bad := bytes.Clone(c.Note)
		if bad[last] = other; bytes.Equal(bad, c.Note) {
			continue
		}
		if _, err := trust.Open(bad); err == nil {
			t.Errorf("the signature ends with %c instead of %c, but is accepted", other, c.Note[last])
		}
	}
}

func TestTrust_UntrustedKeysAreRefused(t *testing.T) {
	key, other := audit.NewKey(), audit.NewKey()
	acme, evil := newLog(t, "acme", 7).head, newLog(t, "evil", 7).head
	signedByOther, _ := other.Sign(acme)
	ofEvil, _ := key.Sign(evil)
	text := fmt.Sprintf("%s\n7\n%s\n", evil.Origin(), evil.Root())
	for name, signed := range map[string][]byte{
		"another key":                         signedByOther.Note,
		"another log with the same key":       ofEvil.Note,
		"another log, signed under this name": resign(t, key, acme.Origin(), text),
		"not a checkpoint":                    resign(t, key, acme.Origin(), "hello\n"),
		"a size with a leading zero":          resign(t, key, acme.Origin(), fmt.Sprintf("%s\n07\n%s\n", acme.Origin(), acme.Root())),
		"a negative size":                     resign(t, key, acme.Origin(), fmt.Sprintf("%s\n-7\n%s\n", acme.Origin(), acme.Root())),
		"a short root":                        resign(t, key, acme.Origin(), fmt.Sprintf("%s\n7\nAAAA\n", acme.Origin())),
		"not a note":                          []byte("hello"),
		"nothing":                             nil,
		"an unsigned text":                    []byte(text + "\n"),
	} {
		got, err := trustIn(t, key, acme).Open(signed)
		if !errors.Is(err, audit.ErrUntrusted) && !errors.Is(err, audit.ErrCheckpoint) {
			t.Errorf("%s: Open = %+v, %v", name, got, err)
		}
	}
	for _, bad := range []string{"", "acme", "a+b+c", "PRIVATE+KEY+a+b+c"} {
		if _, err := audit.NewTrust(bad); !errors.Is(err, audit.ErrUntrusted) {
			t.Errorf("Trusting(%q) = %v", bad, err)
		}
	}
}

// resign signs any text with a key under the name of a log, as a compromised server could.
func resign(t *testing.T, key *audit.Key, origin, text string) []byte {
	t.Helper()
	signer, err := audit.SignerOf(key, origin)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestTrust_OldAndNewKey(t *testing.T) {
	before, after, head := audit.NewKey(), audit.NewKey(), newLog(t, "acme", 3).head
	a, _ := before.Verifier(head.Origin())
	b, _ := after.Verifier(head.Origin())
	trust, err := audit.NewTrust(a, b+"\n", b)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []*audit.Key{before, after} {
		c, _ := key.Sign(head)
		if _, err := trust.Open(c.Note); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenOrCreateKey_CreatesOwnerOnlyFileOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.key")
	origins := make([]string, 8)
	var wg sync.WaitGroup
	for i := range origins {
		wg.Go(func() {
			key, err := audit.OpenOrCreateKey(path)
			if err != nil {
				t.Error(err)
				return
			}
			origins[i], _ = key.Verifier("log")
		})
	}
	wg.Wait()
	for _, verifier := range origins {
		if verifier != origins[0] || verifier == "" {
			t.Errorf("two keys: %q and %q", origins[0], verifier)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

// An existing key may have been used, so it must not be replaced.
func TestOpenOrCreateKey_NeverReplacesKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.key")
	first, err := audit.OpenOrCreateKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := audit.OpenOrCreateKey(path)
	if err != nil || *again != *first {
		t.Errorf("the key was replaced (%v)", err)
	}
}

func TestOpenKey_InvalidFileReturnsErrKeyFile(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if _, err := audit.OpenKey(good); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := audit.OpenOrCreateKey(good); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(good)
	for name, bad := range map[string]string{
		"empty":             "",
		"an encryption key": strings.Repeat("00", 32),
		"short":             string(text[:len(text)-3]),
		"long":              strings.TrimSpace(string(text)) + "00",
		"no hex":            strings.Repeat("z", 2) + string(text),
		"two":               string(text) + string(text),
		"wrong digits":      strings.TrimSpace(string(text))[:len(text)-3] + "zz",
	} {
		path := filepath.Join(dir, "bad")
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.OpenKey(path); !errors.Is(err, audit.ErrKeyFile) {
			t.Errorf("%s: %v; want ErrKeyFile", name, err)
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660} {
		if err := os.Chmod(good, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.OpenKey(good); !errors.Is(err, audit.ErrKeyFile) {
			t.Errorf("mode %o: %v; want ErrKeyFile", mode, err)
		}
	}
}

func TestI7_KeysAreNotPrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.key")
	key, err := audit.OpenOrCreateKey(path)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	_, secret, _ := strings.Cut(strings.TrimSpace(string(text)), ":")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		for _, printed := range []string{fmt.Sprintf(verb, key), fmt.Sprintf(verb, *key)} {
			if strings.Contains(printed, secret[:16]) || strings.Contains(strings.ReplaceAll(printed, " ", ""), decimal(secret[:8])) {
				t.Errorf("%s prints the key", verb)
			}
		}
	}
}

// decimal returns hex digits as fmt prints a list of bytes.
func decimal(digits string) string {
	var out strings.Builder
	for i := 0; i < len(digits); i += 2 {
		var b byte
		fmt.Sscanf(digits[i:i+2], "%02x", &b)
		fmt.Fprint(&out, b)
	}
	return out.String()
}

func TestCreateCheckpoint_SignsOnlyExtensions(t *testing.T) {
	ctx, key := t.Context(), audit.NewKey()
	m := memoryLog(t, "acme", samples(5)...)
	first, err := audit.CreateCheckpoint(ctx, m, "acme", key)
	if err != nil || first.Size != 5 {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := audit.CreateCheckpoint(ctx, m, "acme", key)
	if err != nil || !bytes.Equal(again.Note, first.Note) {
		t.Errorf("nothing was added, but it signed %+v, %v", again, err)
	}
	if _, err := m.Append(ctx, "acme", sample(9, audit.RequestWithdrawn{})); err != nil {
		t.Fatal(err)
	}
	if second, err := audit.CreateCheckpoint(ctx, m, "acme", key); err != nil || second.Size != 6 {
		t.Errorf("%+v, %v", second, err)
	}
	if _, err := audit.CreateCheckpoint(ctx, m, "nobody", key); !errors.Is(err, audit.ErrEmpty) {
		t.Errorf("an empty log: %v; want ErrEmpty", err)
	}
}

// A log must not sign two histories, whatever was done to the store.
func TestCreateCheckpoint_ForkReturnsErrFork(t *testing.T) {
	ctx, key := t.Context(), audit.NewKey()
	signed := memoryLog(t, "acme", samples(5)...)
	c, err := audit.CreateCheckpoint(ctx, signed, "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	forged := samples(7)
	forged[3] = sample(3, audit.RequestDelegated{To: "mallory"})
	for name, m := range map[string]*audit.Memory{
		"shorter":        memoryLog(t, "acme", samples(4)...),
		"same length":    memoryLog(t, "acme", forged[:5]...),
		"longer":         memoryLog(t, "acme", forged...),
		"another origin": memoryLog(t, "acme", sample(8, audit.RequestWithdrawn{}), sample(9, audit.RequestWithdrawn{})),
	} {
		if err := m.AddCheckpoint(ctx, "acme", c); err != nil {
			t.Fatal(err)
		}
		if got, err := audit.CreateCheckpoint(ctx, m, "acme", key); !errors.Is(err, audit.ErrFork) {
			t.Errorf("%s: signed %+v, %v; want ErrFork", name, got, err)
		}
		n := 0
		for range m.Checkpoints(ctx, "acme") {
			n++
		}
		if n != 1 {
			t.Errorf("%s: %d checkpoints are stored", name, n)
		}
	}
}
