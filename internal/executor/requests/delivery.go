package requests

// DeliveryIndex is what became of a notice.
type DeliveryIndex struct {
	Attempts int            `json:"tries"`
	Result   DeliveryResult `json:"result,omitempty"`
}

// DeliveryResult is how the last try ended; "" while it is under way.
type DeliveryResult string
