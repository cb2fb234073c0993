package audit

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint is the signed state of a log at Size records. It is a C2SP checkpoint
// (https://c2sp.org/tlog-checkpoint), a signed note. Keep copies where people with write access to
// the log cannot change them.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   Hash
	// Note is the text with its signatures, as stored and published.
	Note []byte
}

// Sign signs the head of a log. The caller must know that the log extends the last checkpoint: see
// [CreateCheckpoint]. Errors are ErrEmpty and ErrHead.
func (k *Key) Sign(head Head) (Checkpoint, error) {
	if head.Size == 0 {
		return Checkpoint{}, ErrEmpty
	}
	if !head.isConsistent() {
		return Checkpoint{}, fmt.Errorf("%w: it does not match its records", ErrHead)
	}
	c := Checkpoint{Origin: head.Origin(), Size: head.Size, Root: head.Root()}
	signer, err := k.signer(c.Origin)
	if err != nil {
		return Checkpoint{}, err
	}
	c.Note, err = note.Sign(&note.Note{Text: c.text()}, signer)
	return c, err
}

func compareSizes(a, b Checkpoint) int { return cmp.Compare(a.Size, b.Size) }

func (c Checkpoint) text() string { return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root) }

// Trust is a set of trusted keys.
type Trust struct{ verifiers []note.Verifier }

// NewTrust returns a trust in verifier keys, as [Key.Verifier] returns them. A key names its log.
// After a key rotation there are several keys for one log. Duplicates are removed, because package
// note rejects them.
func NewTrust(keys ...string) (Trust, error) {
	var t Trust
	named := make(map[string]bool)
	for _, key := range keys {
		if key = strings.TrimSpace(key); named[key] {
			continue
		}
		named[key] = true
		v, err := note.NewVerifier(key)
		if err != nil {
			return Trust{}, fmt.Errorf("%w: %.200q is not a public key: %w", ErrUntrusted, key, err)
		}
		t.verifiers = append(t.verifiers, v)
	}
	return t, nil
}

// IsEmpty reports whether no key is trusted.
func (t Trust) IsEmpty() bool { return len(t.verifiers) == 0 }

// Open parses a checkpoint and checks its signature: it must be by a trusted key of the
// checkpoint's own log. An error is ErrUntrusted or ErrCheckpoint.
func (t Trust) Open(signed []byte) (Checkpoint, error) {
	opened, err := note.Open(signed, note.VerifierList(t.verifiers...))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	c, err := parseCheckpoint(opened.Text)
	if err != nil {
		return Checkpoint{}, err
	}
	for _, signature := range opened.Sigs {
		// Package note accepts several encodings of a signature. Here every changed byte makes the
		// checkpoint invalid.
		if _, err := base64.StdEncoding.Strict().DecodeString(signature.Base64); signature.Name == c.Origin && err == nil {
			c.Note = signed
			return c, nil
		}
	}
	return Checkpoint{}, fmt.Errorf("%w: no trusted key belongs to %s", ErrUntrusted, c.Origin)
}

// ParseUnverified parses the caller's own checkpoint, without checking signatures. An error is
// ErrCheckpoint.
func ParseUnverified(signed []byte) (Checkpoint, error) {
	_, err := note.Open(signed, note.VerifierList())
	unverified, ok := errors.AsType[*note.UnverifiedNoteError](err)
	if !ok {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	c, err := parseCheckpoint(unverified.Note.Text)
	c.Note = signed
	return c, err
}

// parseCheckpoint parses the text of a checkpoint. Lines after the third are allowed and ignored.
func parseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 {
		return Checkpoint{}, fmt.Errorf("%w: too few lines", ErrCheckpoint)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 1 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("%w: invalid size %.40q", ErrCheckpoint, lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return Checkpoint{}, fmt.Errorf("%w: invalid root %.60q", ErrCheckpoint, lines[2])
	}
	return Checkpoint{Origin: lines[0], Size: size, Root: Hash(root)}, nil
}
