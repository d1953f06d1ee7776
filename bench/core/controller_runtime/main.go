// The contestant that a kubebuilder user would have: a typed kind, a manager, one reconciler that does nothing.
//
// Stock settings but for what would do other work: no metrics server, no probes, no leader election. A Reconcile begins
// with a read from the cache, as every one does; what it saw is noted, so that the bench can tell that nothing was missed.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// WidgetSpec is what the bench's CustomResourceDefinition says (bench/core/widgets.py).
type WidgetSpec struct {
	Size int64  `json:"size"`
	Text string `json:"text,omitempty"`
}

// Widget is one object.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec,omitempty"`
}

// WidgetList is a page of them.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// DeepCopyInto and the rest are what controller-gen writes for these types.
func (in *Widget) DeepCopyInto(out *Widget) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

func (in *Widget) DeepCopyObject() runtime.Object {
	out := new(Widget)
	in.DeepCopyInto(out)
	return out
}

func (in *WidgetList) DeepCopyObject() runtime.Object {
	out := new(WidgetList)
	*out = *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Widget, len(in.Items))
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// tally does what bench/core/tally.py does. Reconcile runs one at a time by default, so it needs no lock.
type tally struct {
	file   *os.File
	wanted int
	sizes  map[string]int64
	counts map[int64]int
}

func newTally() (*tally, error) {
	wanted, err := strconv.Atoi(os.Getenv("BENCH_OBJECTS"))
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(os.Getenv("BENCH_TALLY"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &tally{file, wanted, map[string]int64{}, map[int64]int{}}, err
}

func (t *tally) note(name string, size int64) {
	if t.sizes[name] == size {
		return
	}
	t.sizes[name] = size
	t.counts[size]++
	if count := t.counts[size]; count == 1 || count == t.wanted {
		fmt.Fprintf(t.file, "%d %d %.6f\n", size, count, float64(time.Now().UnixMicro())/1e6)
	}
}

type reconciler struct {
	client.Client
	tally *tally
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := r.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.tally.note(widget.Name, widget.Spec.Size)
	return ctrl.Result{}, nil
}

func run() error {
	ctrl.SetLogger(zap.New())
	tally, err := newTally()
	if err != nil {
		return err
	}
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(group, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, group)
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		LeaderElection:         false,
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&Widget{}).Complete(&reconciler{manager.GetClient(), tally})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
