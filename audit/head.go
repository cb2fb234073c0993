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

// Head is all that is needed to append to the log of an account and to sign it: how long it is, its last hash, and the roots of the complete
// subtrees. It takes 64 hashes at most, however long the log is. A store keeps it as JSON in one row per account, and locks the row to append.
type Head struct {
	Account string
	Size    int64
	// First and Last are the hashes of the first and the last record; zero as long as there is none.
	First, Last Hash

	peaks []Hash // the roots of the complete subtrees, the largest first
}

// EmptyHead is the head of an account without records.
func EmptyHead(account string) Head { return Head{Account: account} }

// Entry is a record that was appended, for the store to keep.
type Entry struct {
	Seq int64
	// Raw is the record. It must be stored as it is: any other spelling is another record.
	Raw []byte
	// Hashes come behind those that are stored already. See [Log.Hashes].
	Hashes []Hash
}

// Append makes of a record the next one of a log. It has no effects: the caller stores the entry and the new head, or neither. An error
// is ErrRecord.
func Append(head Head, r Record) (Entry, Head, error) {
	r.Account, r.Seq, r.Prev = head.Account, head.Size+1, head.Last
	raw, err := r.encode()
	if err != nil {
		return Entry{}, head, err
	}
	next, hashes := head.appendLeaf(HashOf(raw))
	return Entry{Seq: r.Seq, Raw: raw, Hashes: hashes}, next, nil
}

// grow adds a leaf, and returns the hashes of all nodes that are complete with it, from the leaf up.
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

// originPrefix makes the names of logs look like URLs without a scheme, as C2SP wants them.
const originPrefix = "fermata-go.github.io/audit/"

// Origin is the name of the log in checkpoints: the hash of its first record. It is as good as random to anybody who does not have that record, so a
// published checkpoint does not say whose it is; and whoever has the record can check the name. The empty log has no name.
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

// MarshalJSON writes the head for a store.
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

// UnmarshalJSON reads a stored head. An error is ErrHead.
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
		return Hash{}, fmt.Errorf("%.70q is no hash", text)
	}
	return h, nil
}

// sound reports whether the head can be that of a log.
func (h Head) isConsistent() bool { return len(h.peaks) == peakCount(h.Size) }

func peakCount(size int64) int { return bits.OnesCount64(uint64(size)) }

// Is reports whether two heads are the same.
func (h Head) Equal(other Head) bool {
	return h.Account == other.Account && h.Size == other.Size && h.First == other.First && h.Last == other.Last && slices.Equal(h.peaks, other.peaks)
}

// headAt makes the head that a log had when it was size records long, from its stored hashes.
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
