package serve

import (
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/provider/external"
)

// A receiver needs the secret to check a signature, and can sign with it. With a shared one, any
// account could answer the agents of others.
func TestWebhooks_SignedWithAccountSecrets(t *testing.T) {
	shared, old, acme, colon := external.NewSecret(), external.NewSecret(), external.NewSecret(), external.NewSecret()
	secretsOf, err := webhookSecrets([]config.Secret{
		config.Secret(shared), config.Secret("acme: " + acme), config.Secret(old), config.Secret("urn:globex:" + colon),
	})
	if err != nil {
		t.Fatal(err)
	}
	for account, want := range map[string][]string{
		"acme": {acme}, "urn:globex": {colon}, "initech": {shared, old}, "urn": {shared, old},
	} {
		if got, err := secretsOf(t.Context(), account); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d secrets, %v", account, len(got), err)
		}
	}
	secretsOf, err = webhookSecrets([]config.Secret{config.Secret("acme:" + acme)})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := secretsOf(t.Context(), "initech"); err != nil || len(got) > 0 {
		t.Errorf("an account without a secret gets %d of another one, %v", len(got), err)
	}
}
