// Package chain defines the hash chain of an audit log. Each line contains the hash of the previous
// line, so a line cannot be changed, dropped or moved without changing all later lines.
//
// A store creates the lines in the transactions of the changes that they record. Package audit
// defines their content and proofs.
package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Head is the end of a chain: the number of the last line and its hash. The zero value is an empty
// chain.
type Head struct {
	Seq  int64
	Hash [32]byte
}

// ErrLine is returned for an object that cannot become a line: it is not a JSON object, or it is
// empty.
var ErrLine = errors.New("chain: a line must be a non-empty JSON object")

// timeLayout always has six fractional digits, so that a line has one encoding.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Next returns the next line of a chain. object must not have the members seq, prev, time and v;
// Next adds them in front and keeps the other bytes of the object.
func Next(head Head, at time.Time, object []byte) ([]byte, Head, error) {
	if len(object) < len(`{"":0}`) || object[0] != '{' || object[1] != '"' || !json.Valid(object) {
		return nil, Head{}, ErrLine
	}
	line := fmt.Appendf(nil, `{"v":1,"seq":%d,"prev":"%s","time":"%s",`, head.Seq+1, hex.EncodeToString(head.Hash[:]), at.UTC().Format(timeLayout))
	line = append(line, object[1:]...)
	return line, Head{Seq: head.Seq + 1, Hash: Hash(line)}, nil
}

// Hash returns the hash of a stored line.
func Hash(line []byte) [32]byte {
	sum := sha256.New()
	sum.Write([]byte{0})
	sum.Write(line)
	return [32]byte(sum.Sum(nil))
}
