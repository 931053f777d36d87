//go:build linux && stores

package main

import (
	"errors"

	"persistencelab/probeimage/stores"
	"persistencelab/probeimage/wire"
)

func dialStore(address string) (client, error) { return stores.Open(address) }

func isNotFound(err error) bool { return errors.Is(err, stores.ErrNotFound) }

// serviceFault classes an error by what it means for the item, in the store's
// own words.
func serviceFault(err error) *wire.Error {
	f := fault(err)
	switch {
	case errors.Is(err, stores.ErrDenied):
		f.Code = wire.CodeDenied
	case errors.Is(err, stores.ErrFull):
		f.Code = wire.CodeNoSpace
	}
	return f
}
