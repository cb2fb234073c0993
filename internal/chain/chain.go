// Package chain is the form of an audit log in which each line names the one before: nobody can change, drop or move a line without changing
// all that follow.
//
// A store makes the lines, in the transactions of what they tell of, so this is all that a store has to know. What the lines say
// and how they are proved is the business of package audit.
package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Head is the end of a chain: the number of the last line, and its hash. The zero value is a chain without lines.
type Head struct {
	Seq  int64
	Hash [32]byte
}

// ErrLine is the error for what cannot be a line: it is no JSON object, or an empty one.
var ErrLine = errors.New("chain: a line is a JSON object with a member")

// timeLayout has always six digits, so that a line has one form.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Next makes the next line of a chain, from an object in which seq, prev, time and v are missing. They are put in front; the bytes of the object
// remain as they are.
func Next(head Head, at time.Time, object []byte) ([]byte, Head, error) {
	if len(object) < len(`{"":0}`) || object[0] != '{' || object[1] != '"' || !json.Valid(object) {
		return nil, Head{}, ErrLine
	}
	line := fmt.Appendf(nil, `{"v":1,"seq":%d,"prev":"%s","time":"%s",`, head.Seq+1, hex.EncodeToString(head.Hash[:]), at.UTC().Format(timeLayout))
	line = append(line, object[1:]...)
	return line, Head{Seq: head.Seq + 1, Hash: Hash(line)}, nil
}

// Hash is that of a line as it is stored.
func Hash(line []byte) [32]byte {
	sum := sha256.New()
	sum.Write([]byte{0})
	sum.Write(line)
	return [32]byte(sum.Sum(nil))
}
