// The pipeline's contestant that a kubebuilder user would have: a ConfigMap and a condition for each Widget.
//
// The child is applied (client.Apply with a typed apply configuration) and watched (Owns); the status is patched where
// meta.SetStatusCondition changed something. As many objects at the same time as ours: the default, one, is slower.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"example.com/bench/widget"
)

const fieldOwner = client.FieldOwner("widget-controller")

type publisher struct {
	client.Client
	tally *widget.Tally
}

func (p *publisher) publish(ctx context.Context, live *widget.Widget) error {
	p.tally.Handled(live.Name)
	if err := p.Apply(ctx, configMapFor(live), fieldOwner, client.ForceOwnership); err != nil {
		return err
	}
	before := live.DeepCopy()
	changed := meta.SetStatusCondition(&live.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             "Published",
		Message:            fmt.Sprintf("size %d is published", live.Spec.Size),
		ObservedGeneration: live.Generation,
	})
	if !changed {
		return nil
	}
	return p.Status().Patch(ctx, live, client.MergeFrom(before), fieldOwner)
}

func configMapFor(owner *widget.Widget) *corev1ac.ConfigMapApplyConfiguration {
	ref := metav1.NewControllerRef(owner, widget.GroupVersion.WithKind("Widget"))
	return corev1ac.ConfigMap(owner.Name, owner.Namespace).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(ref.APIVersion).
			WithKind(ref.Kind).
			WithName(ref.Name).
			WithUID(ref.UID).
			WithController(true).
			WithBlockOwnerDeletion(true)).
		WithData(map[string]string{"size": strconv.FormatInt(owner.Spec.Size, 10)})
}

// cacheOptions shortens the period after which everything is reconciled again, where the bench asks for that.
func cacheOptions() cache.Options {
	seconds, err := strconv.ParseFloat(os.Getenv("BENCH_RESYNC_SECONDS"), 64)
	if err != nil {
		return cache.Options{}
	}
	period := time.Duration(seconds * float64(time.Second))
	return cache.Options{SyncPeriod: &period}
}

func main() {
	widget.Run(cacheOptions(), func(manager ctrl.Manager, tally *widget.Tally) error {
		if err := clientgoscheme.AddToScheme(manager.GetScheme()); err != nil {
			return err
		}
		publisher := &publisher{manager.GetClient(), tally}
		return ctrl.NewControllerManagedBy(manager).
			For(&widget.Widget{}).
			Owns(&corev1.ConfigMap{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
			Complete(&widget.Reconciler{Client: manager.GetClient(), Handle: publisher.publish})
	})
}
