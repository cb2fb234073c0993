// Package ids makes the visible ids of interrupts and digests of what is shown.
package ids

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata"
)

// A provider may ask again under an id that was answered: its code did not like the answer, or uses
// one id for one question after the other. A decision is final, so a repeated question gets a
// visible id of its own: "int_1", "int_1~2", "int_1~3". repeatSeparator stands before the number.
const repeatSeparator = "~"

// ProviderID is the provider's id of a visible one.
func ProviderID(visible string) string {
	id, number, ok := splitRepeat(visible)
	if !ok || number < 2 {
		return visible
	}
	return id
}

// Next is what a question is visible as when it is asked once more.
func Next(visible string) string {
	id, number, ok := splitRepeat(visible)
	if !ok || number < 2 {
		id, number = visible, 1
	}
	return id + repeatSeparator + strconv.Itoa(number+1)
}

func splitRepeat(visible string) (id string, number int, ok bool) {
	i := strings.LastIndex(visible, repeatSeparator)
	if i < 0 {
		return "", 0, false
	}
	number, err := strconv.Atoi(visible[i+len(repeatSeparator):])
	return visible[:i], number, err == nil
}

// EnvelopeDigest is the digest of what a question shows. An answer that carries it is refused if
// the question shows something else.
func EnvelopeDigest(shown fermata.Envelope) string { return Hash(shown.Kind, shown.Data) }

// Hash returns the SHA-256 of data under a name.
func Hash(name string, data []byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", name)
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}
