package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// TileDocument is the document kind of complete tiles.
const TileDocument store.DocumentKind = "audit-tile"

// tileHeight gives tiles of 256 hashes, as in other transparency logs.
const tileHeight = 8

// tileTree is the tree over the lines of an account, divided into tiles. A tile of level 0 has the
// hashes of 256 records, a tile of level 1 the roots of 256 such tiles, and so on. A complete tile
// never changes, so it is stored as a document; incomplete ones are computed from the lines. So
// each access reads a few tiles and fewer than 256 lines, even after a restart.
type tileTree struct {
	*StoreLog
	ctx     context.Context
	account string
	end     chain.Head
	cache   map[tileAt][]Hash
}

// tileAt is the position of a tile.
type tileAt struct {
	level int
	n     int64
}

// accountTile is a tile of an account.
type accountTile struct {
	account string
	tileAt
}

func (s *StoreLog) tiles(ctx context.Context, account string, end chain.Head) *tileTree {
	return &tileTree{StoreLog: s, ctx: ctx, account: account, end: end, cache: make(map[tileAt][]Hash)}
}

// ReadHashes lets package tlog read the tree. A hash that does not exist, or whose lines are
// incomplete, is ErrNotFound.
func (t *tileTree) ReadHashes(indexes []int64) ([]Hash, error) {
	hashes := make([]Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index >= tlog.StoredHashCount(t.end.Seq) {
			return nil, fmt.Errorf("%w: hash %d", ErrNotFound, index)
		}
		level, n := tlog.SplitStoredHashIndex(index)
		below := level % t.height // the levels above the tile's own hashes
		at := tileAt{level / t.height, n << below >> t.height}
		tile, err := t.tile(at)
		if err != nil {
			return nil, err
		}
		first := n<<below - at.n<<t.height
		hashes[i] = rootOf(tile[first : first+1<<below])
	}
	return hashes, nil
}

// rootOf returns the root of a complete subtree.
func rootOf(hashes []Hash) Hash {
	if len(hashes) == 1 {
		return hashes[0]
	}
	half := len(hashes) / 2
	return tlog.NodeHash(rootOf(hashes[:half]), rootOf(hashes[half:]))
}

// tile returns a tile, as far as it is filled.
func (t *tileTree) tile(at tileAt) ([]Hash, error) {
	if tile, ok := t.cache[at]; ok {
		return tile, nil
	}
	size := int64(1) << t.height
	width := min(size, t.end.Seq>>(t.height*at.level)-at.n*size)
	complete := width == size
	tile := t.loadTile(at, complete)
	if tile == nil {
		var err error
		if at.level == 0 {
			tile, err = t.leafHashes(at.n*size, width)
		} else {
			tile, err = t.roots(tileAt{at.level - 1, at.n * size}, width)
		}
		if err != nil {
			return nil, err
		}
		if complete {
			t.storeTile(at, tile)
		}
	}
	t.cache[at] = tile
	return tile, nil
}

// roots returns the roots of adjacent complete tiles.
func (t *tileTree) roots(first tileAt, count int64) ([]Hash, error) {
	var roots []Hash
	for i := range count {
		at := tileAt{first.level, first.n + i}
		t.mu.Lock()
		root, known := t.tileRoots[accountTile{t.account, at}]
		t.mu.Unlock()
		if !known {
			tile, err := t.tile(at)
			if err != nil {
				return nil, err
			}
			root = rootOf(tile)
			delete(t.cache, at)
			t.mu.Lock()
			t.tileRoots[accountTile{t.account, at}] = root
			t.mu.Unlock()
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// leafHashes returns the hashes of the lines after a number. Each line must follow the previous
// one, and the last must match the next line or the store's head. Otherwise a checkpoint could sign
// records that were never written.
func (t *tileTree) leafHashes(after, count int64) ([]Hash, error) {
	var prev Hash
	if after > 0 {
		tile, err := t.tile(tileAt{0, (after - 1) >> t.height})
		if err != nil {
			return nil, err
		}
		prev = tile[len(tile)-1]
	}
	var leaves []Hash
	for raw, err := range t.Records(t.ctx, t.account, after+1, min(after+count+1, t.end.Seq)) {
		if err != nil {
			return nil, err
		}
		h, err := readHeader(raw)
		if err != nil || h.account != t.account || h.seq != after+int64(len(leaves))+1 || h.prev != prev {
			return nil, t.incomplete(after + int64(len(leaves)) + 1)
		}
		if int64(len(leaves)) == count {
			return leaves, nil // read only for its prev
		}
		prev = HashOf(raw)
		leaves = append(leaves, prev)
	}
	if int64(len(leaves)) < count || prev != t.end.Hash {
		return nil, t.incomplete(after + int64(len(leaves)))
	}
	return leaves, nil
}

func (t *tileTree) incomplete(seq int64) error {
	return fmt.Errorf("%w: the tree is incomplete: the chain is broken at record %d", ErrNotFound, seq)
}

// tileIndex is the index of a tile document. Hashes are not secret, so it is not encrypted.
type tileIndex struct {
	Hashes string `json:"hashes"`
}

func (t *tileTree) documentID(at tileAt) string {
	return fmt.Sprintf("%d/%d/%d", t.height, at.level, at.n)
}

// loadTile returns a stored complete tile, or nil. An unreadable tile is computed again.
func (t *tileTree) loadTile(at tileAt, complete bool) []Hash {
	if !complete {
		return nil
	}
	doc, err := t.lines.Document(t.ctx, t.account, TileDocument, t.documentID(at))
	if err != nil {
		return nil
	}
	var index tileIndex
	if strictjson.Decode(bytes.TrimSpace(doc.Index), &index) != nil {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(index.Hashes)
	if err != nil || len(data) != tlog.HashSize<<t.height {
		return nil
	}
	tile := make([]Hash, 0, 1<<t.height)
	for ; len(data) > 0; data = data[tlog.HashSize:] {
		tile = append(tile, Hash(data[:tlog.HashSize]))
	}
	return tile
}

// storeTile stores a complete tile. If that fails, it is computed again the next time.
func (t *tileTree) storeTile(at tileAt, tile []Hash) {
	var data []byte
	for _, hash := range tile {
		data = append(data, hash[:]...)
	}
	index, err := json.Marshal(tileIndex{Hashes: base64.StdEncoding.EncodeToString(data)})
	if err == nil {
		_ = t.lines.CommitWrites(t.ctx, t.account, store.Writes{Documents: []store.DocumentChange{{Kind: TileDocument, ID: t.documentID(at), Index: index}}})
	}
}
