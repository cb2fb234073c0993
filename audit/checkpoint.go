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

// Checkpoint says what a log was when it was Size records long. It is a C2SP checkpoint (https://c2sp.org/tlog-checkpoint), a signed note,
// and worth most where nobody who can write to the log can reach it.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   Hash
	// Note is the text with its signatures, as it is kept and published.
	Note []byte
}

// Sign makes a checkpoint of a log. The caller knows that the log only grew since the last one: see [CreateCheckpoint]. Errors are
// ErrEmpty and ErrHead.
func (k *Key) Sign(head Head) (Checkpoint, error) {
	if head.Size == 0 {
		return Checkpoint{}, ErrEmpty
	}
	if !head.isConsistent() {
		return Checkpoint{}, fmt.Errorf("%w: it is not that of its records", ErrHead)
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

// Trust is whose signatures count.
type Trust struct{ verifiers []note.Verifier }

// NewTrust makes a trust of verifier keys, as [Key.Verifier] prints them. A key names the log that it is good for. After a change of keys there
// are several for one log. One that is named twice counts once: package note opens nothing with it otherwise.
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
			return Trust{}, fmt.Errorf("%w: %.200q is no public key: %w", ErrUntrusted, key, err)
		}
		t.verifiers = append(t.verifiers, v)
	}
	return t, nil
}

// Nobody reports whether no signature counts.
func (t Trust) IsEmpty() bool { return len(t.verifiers) == 0 }

// Open reads a checkpoint and checks its signature: one of a trusted key of the log that the checkpoint is about. An error is
// ErrUntrusted or ErrCheckpoint.
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
		// Package note takes several spellings of a signature for the same. Here a checkpoint with any byte changed is another one.
		if _, err := base64.StdEncoding.Strict().DecodeString(signature.Base64); signature.Name == c.Origin && err == nil {
			c.Note = signed
			return c, nil
		}
	}
	return Checkpoint{}, fmt.Errorf("%w: none of the keys is one of %s", ErrUntrusted, c.Origin)
}

// ParseUnverified reads a checkpoint of the caller's own, without looking at the signatures. An error is ErrCheckpoint.
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

// parseCheckpoint reads the text of a checkpoint. Lines behind the third are allowed and say nothing to us.
func parseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 {
		return Checkpoint{}, fmt.Errorf("%w: it has too few lines", ErrCheckpoint)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 1 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("%w: %.40q is no size", ErrCheckpoint, lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return Checkpoint{}, fmt.Errorf("%w: %.60q is no root", ErrCheckpoint, lines[2])
	}
	return Checkpoint{Origin: lines[0], Size: size, Root: Hash(root)}, nil
}
