// The webhooks' contestant that a kubebuilder user would have: a defaulter and a validator of Widgets.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/bench/widget"
)

type reviewer struct{}

func (reviewer) Default(_ context.Context, reviewed *widget.Widget) error {
	if reviewed.Spec.Text == "" {
		reviewed.Spec.Text = "size " + strconv.FormatInt(reviewed.Spec.Size, 10)
	}
	return nil
}

func (reviewer) ValidateCreate(_ context.Context, reviewed *widget.Widget) (admission.Warnings, error) {
	if reviewed.Spec.Size%2 == 0 {
		return nil, nil
	}
	odd := field.Invalid(field.NewPath("spec", "size"), reviewed.Spec.Size, "must be even")
	kind := schema.GroupKind{Group: widget.GroupVersion.Group, Kind: "Widget"}
	return nil, apierrors.NewInvalid(kind, reviewed.Name, field.ErrorList{odd})
}

func (r reviewer) ValidateUpdate(ctx context.Context, _, reviewed *widget.Widget) (admission.Warnings, error) {
	return r.ValidateCreate(ctx, reviewed)
}

func (reviewer) ValidateDelete(context.Context, *widget.Widget) (admission.Warnings, error) {
	return nil, nil
}

func main() {
	port, err := strconv.Atoi(os.Getenv("BENCH_WEBHOOK_PORT"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: os.Getenv("BENCH_CERTIFICATE")})
	widget.RunWith(cache.Options{}, server, func(manager ctrl.Manager, _ *widget.Tally) error {
		return ctrl.NewWebhookManagedBy(manager, &widget.Widget{}).
			WithDefaulter(reviewer{}).
			WithValidator(reviewer{}).
			Complete()
	})
}
