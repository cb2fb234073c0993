package target

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBook_AKnownKeyDoesNothingButIsSeen(t *testing.T) {
	b := Open(t.TempDir(), "bank")
	for _, call := range []struct {
		key    string
		number int
	}{{"a", 1}, {"b", 2}, {"a", 1}, {"b", 2}} {
		if number, err := b.DoOnce(call.key, "10 EUR"); number != call.number || err != nil {
			t.Errorf("%s is number %d, want %d; %v", call.key, number, call.number, err)
		}
	}
	if done, again, err := b.Count(); done != 2 || again != 2 || err != nil {
		t.Errorf("done %d, again %d, %v; want 2, 2", done, again, err)
	}
	if _, err := b.DoOnce("", "10 EUR"); err == nil {
		t.Error("a call without a key was accepted")
	}
}

func TestBook_WithoutKeysEveryCallCounts(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // two processes
		if err := Open(dir, "mail").Do("a", "hello"); err != nil {
			t.Fatal(err)
		}
	}
	if done, again, err := Open(dir, "mail").Count(); done != 2 || again != 0 || err != nil {
		t.Errorf("done %d, again %d, %v; want 2, 0", done, again, err)
	}
}

func TestLog_InvalidLineReturnsError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mail.jsonl"), []byte("{\"key\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, "mail").Count(); err == nil {
		t.Error("it was passed over")
	}
}
