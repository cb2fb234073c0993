package authn

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// An API key is "fermata_" with the id of the key, a secret, and a checksum, so that secret
// scanners recognize it without a lookup. The store keeps the hash of the secret: it has 160 bits,
// so a fast hash is sufficient.
//
//	fermata_ + id (16 characters) + secret (32 characters) + checksum (7 characters)
const (
	keyPrefix    = "fermata_"
	idBytes      = 10
	secretBytes  = 20
	idLength     = 16
	secretLength = 32
	sumLength    = 7
)

var alphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewKey creates an API key. It returns the key, which is shown to its user once, and the
// credential to store.
func NewKey(account, name string, role Role, expires time.Time) (key string, kept store.Credential, err error) {
	if roles := append(slices.Clone(Roles), RoleFrontend); !slices.Contains(roles, role) {
		return "", kept, fmt.Errorf("authn: unknown role %q; the roles are %v", role, roles)
	}
	if account == "" || name == "" {
		return "", kept, errors.New("authn: an API key needs an account and a name")
	}
	var raw [idBytes + secretBytes]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", kept, err
	}
	id, secret := alphabet.EncodeToString(raw[:idBytes]), alphabet.EncodeToString(raw[idBytes:])
	kept = store.Credential{ID: id, Account: account, Name: name, Role: string(role), Hash: hashOf(secret), Expires: expires}
	return keyPrefix + id + secret + checksum(id+secret), kept, nil
}

// IsSession reports whether an id belongs to a browser session and not to an API key.
func IsSession(id string) bool { return strings.HasPrefix(id, sessionIDKind+"_") }

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func checksum(text string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(text)))
	return alphabet.EncodeToString(sum[:])
}

// parseKey splits a key into id and secret. Malformed keys are recognized without a store lookup.
func parseKey(key string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || len(rest) != idLength+secretLength+sumLength {
		return "", "", false
	}
	body, sum := rest[:idLength+secretLength], rest[idLength+secretLength:]
	return body[:idLength], body[idLength:], checksum(body) == sum
}

// Keys returns an Authenticator for API keys. A revoked key is rejected at once.
func Keys(credentials store.Credentials) Authenticator {
	return AuthenticatorFunc(func(r *http.Request) (Principal, error) {
		id, secret, ok := parseKey(BearerToken(r))
		if !ok {
			return Principal{}, ErrUnauthenticated
		}
		return checkCredential(r.Context(), credentials, id, secret)
	})
}

func checkCredential(ctx context.Context, credentials store.Credentials, id, secret string) (Principal, error) {
	c, err := credentials.Credential(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return Principal{}, ErrUnauthenticated
	}
	if err != nil {
		return Principal{}, err
	}
	good := subtle.ConstantTimeCompare(c.Hash, hashOf(secret)) == 1
	if !good || !c.Revoked.IsZero() || !c.Expires.IsZero() && !time.Now().Before(c.Expires) {
		return Principal{}, ErrUnauthenticated
	}
	return Principal{Account: c.Account, ID: c.Name, Roles: []Role{Role(c.Role)}, Auth: Auth{Method: MethodAPIKey, Credential: c.ID, Strength: requirement.AuthToken, Until: c.Expires}}, nil
}

// BearerToken returns the bearer token of a request.
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// firstOf authenticates with the first authenticator that recognizes the caller.
func firstOf(ways ...Authenticator) Authenticator {
	return AuthenticatorFunc(func(r *http.Request) (Principal, error) {
		for _, way := range ways {
			if p, err := way.Authenticate(r); !errors.Is(err, ErrUnauthenticated) {
				return p, err
			}
		}
		return Principal{}, ErrUnauthenticated
	})
}
