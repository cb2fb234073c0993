package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// Head is the state that is needed to append to a log and to sign it: its size, its last hash, and
// the roots of the complete subtrees, at most 64 hashes. A store keeps it as JSON in one row per
// account, and locks the row to append.
type Head struct {
	Account string
	Size    int64
	// First and Last are the hashes of the first and the last record, or zero if the log is empty.
	First, Last Hash

	peaks []Hash // the roots of the complete subtrees, largest first
}

// EmptyHead returns the head of an account without records.
func EmptyHead(account string) Head { return Head{Account: account} }

// Entry is an appended record, for the store.
type Entry struct {
	Seq int64
	// Raw is the record. It must be stored unchanged: another encoding is another record.
	Raw []byte
	// Hashes are appended to the stored hashes. See [Log.Hashes].
	Hashes []Hash
}

// Append encodes a record as the next one of a log. It has no side effects: the caller stores both
// the entry and the new head, or neither. An error is ErrRecord.
func Append(head Head, r Record) (Entry, Head, error) {
	r.Account, r.Seq, r.Prev = head.Account, head.Size+1, head.Last
	raw, err := r.encode()
	if err != nil {
		return Entry{}, head, err
	}
	next, hashes := head.appendLeaf(HashOf(raw))
	return Entry{Seq: r.Seq, Raw: raw, Hashes: hashes}, next, nil
}

// appendLeaf adds a leaf and returns the hashes of all nodes that it completes, from the leaf up.
func (h Head) appendLeaf(leaf Hash) (Head, []Hash) {
	complete := []Hash{leaf}
	peaks, node := slices.Clone(h.peaks), leaf
	for n := h.Size; n&1 == 1; n >>= 1 {
		last := len(peaks) - 1
		node = tlog.NodeHash(peaks[last], node)
		peaks = peaks[:last]
		complete = append(complete, node)
	}
	if h.Size == 0 {
		h.First = leaf
	}
	h.Size, h.Last, h.peaks = h.Size+1, leaf, append(peaks, node)
	return h, complete
}

// Root returns the root of the tree over all records.
func (h Head) Root() Hash {
	if len(h.peaks) == 0 {
		return sha256.Sum256(nil)
	}
	root := h.peaks[len(h.peaks)-1]
	for _, peak := range slices.Backward(h.peaks[:len(h.peaks)-1]) {
		root = tlog.NodeHash(peak, root)
	}
	return root
}

// originPrefix makes origins look like URLs without a scheme, as C2SP requires.
const originPrefix = "fermata-go.github.io/audit/"

// Origin returns the name of the log in checkpoints: the hash of its first record. It looks random
// without that record, so a published checkpoint does not reveal the account. With the record, the
// name can be checked. An empty log has no name.
func (h Head) Origin() string {
	if h.Size == 0 {
		return ""
	}
	return originPrefix + hex.EncodeToString(h.First[:])
}

type headJSON struct {
	Account string   `json:"account"`
	Size    int64    `json:"size"`
	First   string   `json:"first,omitempty"`
	Last    string   `json:"last,omitempty"`
	Peaks   []string `json:"peaks,omitempty"`
}

// MarshalJSON encodes the head for a store.
func (h Head) MarshalJSON() ([]byte, error) {
	out := headJSON{Account: h.Account, Size: h.Size}
	if h.Size > 0 {
		out.First, out.Last = hex.EncodeToString(h.First[:]), hex.EncodeToString(h.Last[:])
	}
	for _, peak := range h.peaks {
		out.Peaks = append(out.Peaks, hex.EncodeToString(peak[:]))
	}
	return json.Marshal(out)
}

// UnmarshalJSON decodes a stored head. An error is ErrHead.
func (h *Head) UnmarshalJSON(data []byte) error {
	var in headJSON
	if err := strictjson.Decode(data, &in); err != nil {
		return fmt.Errorf("%w: %w", ErrHead, err)
	}
	if in.Size < 0 || len(in.Peaks) != peakCount(in.Size) || (in.Size == 0) != (in.First+in.Last == "") {
		return fmt.Errorf("%w: %d hashes for %d records", ErrHead, len(in.Peaks), in.Size)
	}
	got := Head{Account: in.Account, Size: in.Size, peaks: make([]Hash, len(in.Peaks))}
	if in.Size > 0 {
		texts := append([]string{in.First, in.Last}, in.Peaks...)
		into := []*Hash{&got.First, &got.Last}
		for i := range got.peaks {
			into = append(into, &got.peaks[i])
		}
		for i, text := range texts {
			hash, err := parseHash(text)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrHead, err)
			}
			*into[i] = hash
		}
	}
	*h = got
	return nil
}

func parseHash(text string) (h Hash, err error) {
	s := scanner{rest: []byte(text)}
	s.hex(h[:])
	if s.failed || len(s.rest) > 0 {
		return Hash{}, fmt.Errorf("invalid hash %.70q", text)
	}
	return h, nil
}

// isConsistent reports whether the head has the right number of hashes.
func (h Head) isConsistent() bool { return len(h.peaks) == peakCount(h.Size) }

func peakCount(size int64) int { return bits.OnesCount64(uint64(size)) }

// Equal reports whether two heads are equal.
func (h Head) Equal(other Head) bool {
	return h.Account == other.Account && h.Size == other.Size && h.First == other.First && h.Last == other.Last && slices.Equal(h.peaks, other.peaks)
}

// headAt computes the head that a log had at a size, from its stored hashes.
func headAt(account string, size int64, hashes tlog.HashReader) (Head, error) {
	h := Head{Account: account, Size: size}
	if size == 0 {
		return h, nil
	}
	indexes := []int64{0, tlog.StoredHashIndex(0, size-1)}
	for level, begin := bits.Len64(uint64(size))-1, int64(0); level >= 0; level-- {
		if size&(1<<level) != 0 {
			indexes = append(indexes, tlog.StoredHashIndex(level, begin>>level))
			begin += 1 << level
		}
	}
	got, err := hashes.ReadHashes(indexes)
	if err != nil {
		return h, err
	}
	h.First, h.Last, h.peaks = got[0], got[1], slices.Clone(got[2:])
	return h, nil
}
