// Package widget has what the contestants share: a typed kind as kubebuilder scaffolds it, a manager, and a tally.
package widget

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// GroupVersion is that of the kind.
var GroupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// Spec is what the benches' CustomResourceDefinitions say.
type Spec struct {
	Size int64  `json:"size"`
	Text string `json:"text,omitempty"`
}

// Status has conditions where the definition has them.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Widget is one object.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec,omitempty"`
	Status            Status `json:"status,omitempty"`
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
	in.Status.DeepCopyInto(&out.Status)
}

func (in *Status) DeepCopyInto(out *Status) {
	if in.Conditions == nil {
		return
	}
	out.Conditions = make([]metav1.Condition, len(in.Conditions))
	for i := range in.Conditions {
		in.Conditions[i].DeepCopyInto(&out.Conditions[i])
	}
}

func (in *Widget) DeepCopy() *Widget {
	out := new(Widget)
	in.DeepCopyInto(out)
	return out
}

func (in *Widget) DeepCopyObject() runtime.Object {
	return in.DeepCopy()
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

// Reconciler reads the object from the cache, as every Reconcile begins, and handles it.
type Reconciler struct {
	client.Client
	Handle func(context.Context, *Widget) error
}

func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var live Widget
	if err := r.Get(ctx, req.NamespacedName, &live); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, r.Handle(ctx, &live)
}

// Run serves a controller until a signal comes, and ends the process with code 1 after an error.
//
// Stock settings but for what would do other work: no metrics server, no probes, no leader election.
func Run(options cache.Options, setUp func(ctrl.Manager, *Tally) error) {
	RunWith(options, nil, setUp)
}

// RunWith does the same with a webhook server.
func RunWith(options cache.Options, server webhook.Server, setUp func(ctrl.Manager, *Tally) error) {
	if err := serve(options, server, setUp); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(options cache.Options, server webhook.Server, setUp func(ctrl.Manager, *Tally) error) error {
	ctrl.SetLogger(zap.New())
	tally, err := newTally()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(GroupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Cache:                  options,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		LeaderElection:         false,
		WebhookServer:          server,
	})
	if err != nil {
		return err
	}
	if err := setUp(manager, tally); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
