package texts

import "github.com/fermata-go/fermata/internal/refusal"

// refusalTexts are the sentences that all surfaces share.
var refusalTexts = func() Translation {
	all := make(Translation)
	for _, code := range refusal.Codes() {
		all["refused."+code] = refusal.Sentence(code, "")
	}
	return all
}()
