"""Settings from the environment: omitted fields keep their defaults, and invalid values are refused with a sentence."""

import pytest
from structlog.testing import capture_logs

from vademecum import settings as settings_module
from vademecum.errors import BadRequest
from vademecum.model.agents.observations import KEPT_DAYS
from vademecum.services.accounts.rate_limiter import DELAY_MAX_S, RateLimiter
from vademecum.settings import RENAMED, Rates, default_tiers, from_environment


def test_default_address_is_the_loopback(tmp_path):
    assert from_environment({}, data=tmp_path).host == "127.0.0.1"


def test_omitted_tier_fields_keep_their_defaults(tmp_path):
    settings = from_environment({"VADEMECUM_TIERS": '{"FREE": {"documents": 20}}'}, data=tmp_path)
    before = default_tiers()
    free = settings.tiers["FREE"]
    assert (free.documents, free.file_bytes) == (20, before["FREE"].file_bytes)
    assert not free.authoritative and not free.searches_documents
    assert {name: settings.tiers[name] for name in ("JIVE", "JIGGA")} == {
        name: before[name] for name in ("JIVE", "JIGGA")
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TIERS", '{"FREE": {"document": 20}}'),
        ("TIERS", '{"GOLD": {"documents": 20}}'),
        ("TIERS", '{"FREE": 20}'),
        ("TIERS", "[]"),
        ("TIERS", '{"JIGGA": {"fileBytes": 67108864}}'),  # larger than any accepted request
        ("RATES", '{"answer": 0}'),
        ("RATES", '{"answers": 5}'),
        ("ORIGIN", "docs.example.org"),
        ("ORIGIN", "https://"),
        ("ORIGIN", "https://docs.example.org/app"),
        ("ORIGIN", "ftp://docs.example.org"),
        ("TRUSTED_PROXIES", "nonsense"),
        ("TRUSTED_PROXIES", "127.0.0.1, 999.1.1.1"),
        ("TRUSTED_PROXIES", "*"),
        ("TRUSTED_PROXIES", "127.0.0.1, ::/0"),
        ("TRUSTED_PROXIES", "0.0.0.0/0"),
    ],
)
def test_invalid_setting_is_refused_with_a_sentence(tmp_path, name, value):
    with pytest.raises(BadRequest, match="A setting is invalid"):
        from_environment({f"VADEMECUM_{name}": value}, data=tmp_path)


@pytest.mark.parametrize("proxies", ["", "127.0.0.1", "127.0.0.1, ::1", "10.0.0.0/8"])
@pytest.mark.parametrize("origin", ["", "https://docs.example.org", "http://localhost:8443"])
def test_valid_origin_and_proxies_are_accepted(tmp_path, origin, proxies):
    environment = {"VADEMECUM_ORIGIN": origin, "VADEMECUM_TRUSTED_PROXIES": proxies}
    assert from_environment(environment, data=tmp_path).origin == origin


def test_delay_after_failures_is_bounded():
    limiter = RateLimiter(Rates(), lambda: 0.0)
    for _ in range(2000):
        limiter.record_failure("an address")
    with pytest.raises(Exception, match=f"Try again in {DELAY_MAX_S:.0f} s"):
        limiter.check_failures("an address")


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_old_setting_name_is_read_with_a_warning(tmp_path, old, new):
    value = '{"read": 2}' if old == "observations_days" else "7.5"
    expected = {**KEPT_DAYS, "read": 2} if old == "observations_days" else 7.5
    settings_module._warn_renamed.cache_clear()
    with capture_logs() as logs:
        by_old = from_environment({f"VADEMECUM_{old.upper()}": value}, data=tmp_path)
        from_environment({f"VADEMECUM_{old.upper()}": value}, data=tmp_path)
    assert getattr(by_old, new) == expected
    assert [f"VADEMECUM_{new.upper()}" in log["event"] for log in logs] == [True], "warned once"


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_new_setting_name_wins_over_the_old_one(tmp_path, old, new):
    values = ('{"read": 2}', '{"read": 3}') if old == "observations_days" else ("7", "8")
    both = {f"VADEMECUM_{old.upper()}": values[0], f"VADEMECUM_{new.upper()}": values[1]}
    expected = {**KEPT_DAYS, "read": 3} if old == "observations_days" else 8
    assert getattr(from_environment(both, data=tmp_path), new) == expected
