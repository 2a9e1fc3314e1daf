"""Plugins that answer questions about specs wrongly."""

# ruff: noqa: N801 - classes are named after checks, and after attributes of the plugin that they break

import itertools
import os

from complete_plugin import CompletePlugin, handle_of, source_of

from volumehost import hookimpl


class it_supports_its_own_volume(CompletePlugin):
    says = "can_support is false for the volume work of"

    @hookimpl
    def can_support(self, spec):
        return False


class it_supports_no_empty_spec(CompletePlugin):
    says = "can_support raised AttributeError: 'NoneType' object has no attribute 'spec', asked about"

    @hookimpl
    def can_support(self, spec):
        return (spec.volume or spec.persistent_volume.spec).flex_volume is not None


class it_supports_no_empty_spec__yes(CompletePlugin):
    says = "can_support is true for a spec with neither volume nor PersistentVolume"

    @hookimpl
    def can_support(self, spec):
        return spec.source() in ("", "flex_volume")


class it_supports_no_volume_of_others(CompletePlugin):
    says = "can_support is true for a pod's volume of kind flex_volume"

    @hookimpl
    def can_support(self, spec):
        return spec.source() == "flex_volume"


class it_supports_no_volume_of_others__not_a_bool(CompletePlugin):
    says = "can_support returned None, not a bool, asked about a pod's volume of kind host_path"

    @hookimpl
    def can_support(self, spec):
        return True if source_of(spec) else None


class asking_has_no_effect(CompletePlugin):
    says = "asking created or removed"

    @hookimpl
    def can_support(self, spec):
        os.makedirs(f"{self.array}/asked", exist_ok=True)
        return super().can_support(spec)


class asking_has_no_effect__spec(CompletePlugin):
    says = "asking changed the spec"

    @hookimpl
    def get_volume_name(self, spec):
        source_of(spec).fs_type = "ext4"
        return super().get_volume_name(spec)


class declared_sources_are_kinds_of_kubernetes(CompletePlugin):
    says = "get_volume_sources declares ['flexVolume'], which are no kinds of source"

    @hookimpl
    def get_volume_sources(self):
        return ["flexVolume", "flex_volume"]


class declared_sources_cover_what_it_supports(CompletePlugin):
    says = "get_volume_sources declares ['csi'], but the volume work has the source 'flex_volume'"

    @hookimpl
    def get_volume_sources(self):
        return ["csi"]


class the_volume_name_is_stable(CompletePlugin):
    says = "get_volume_name returned 'vol-1-1', 'vol-1-2', 'vol-1-1' for one and the same spec"

    @hookimpl
    def init(self, host):
        super().init(host)
        self.count = itertools.count(1)

    @hookimpl
    def get_volume_name(self, spec):
        return f"{handle_of(spec)}-{next(self.count)}"


class the_volume_name_is_stable__no_text(CompletePlugin):
    says = "which is no text"

    @hookimpl
    def get_volume_name(self, spec):
        return handle_of(spec), "volume"


class the_volume_name_of_other_kinds_is_refused(CompletePlugin):
    says = "get_volume_name returned '' for a spec with neither volume nor PersistentVolume"

    @hookimpl
    def get_volume_name(self, spec):
        return spec.name()


class the_volume_name_of_other_kinds_is_refused__not_in_words(CompletePlugin):
    says = "get_volume_name raised AttributeError: 'NoneType' object has no attribute 'options', which is no"

    @hookimpl
    def get_volume_name(self, spec):
        return source_of(spec).options["handle"]


class optional_questions_are_answered_with_yes_or_no(CompletePlugin):
    says = "requires_remount returned None, not a bool"

    @hookimpl
    def requires_remount(self, spec):
        pass
