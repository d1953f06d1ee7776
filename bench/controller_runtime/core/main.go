// The core's contestant that a kubebuilder user would have: one reconciler that does nothing.
//
// What it saw is noted, so that the bench can tell that nothing was missed.
package main

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"example.com/bench/widget"
)

func main() {
	widget.Run(cache.Options{}, func(manager ctrl.Manager, tally *widget.Tally) error {
		note := func(_ context.Context, live *widget.Widget) error {
			tally.Note(live.Name, live.Spec.Size)
			return nil
		}
		return ctrl.NewControllerManagedBy(manager).
			For(&widget.Widget{}).
			Complete(&widget.Reconciler{Client: manager.GetClient(), Handle: note})
	})
}
