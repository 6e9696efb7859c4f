"""Who runs where: what the inventory declares, and what it leaves open."""

from __future__ import annotations

from gen.placement import cards_of, cards_open, homeless, services_on, services_open, shared
from tests.gen.specimens import fleet, small_fleet


def test_cards_stand_in_the_host_that_is_declared_and_open_ones_in_none() -> None:
    inventory = fleet()
    assert cards_of(inventory, "cluster") == ("b60", "b580-1")
    assert cards_open(inventory, "cluster") == ("b580-2",)
    assert cards_open(inventory, "office-workstation") == ("b580-2",)
    assert cards_open(inventory, "home-workstation") == (), "the question names the hosts that it leaves open"


def test_a_service_is_on_its_card_and_an_open_one_may_be_on_those_it_leaves_open() -> None:
    inventory = fleet()
    assert services_on(inventory, "b60") == ("comfyui",)
    assert "text-8b" in services_open(inventory, "b60"), "any card of its host"
    assert "text-8b-b580" not in services_open(inventory, "b60"), "one of the B580s"
    assert {"text-8b-b580", "jellyfin"} <= set(services_open(inventory, "b580-2"))
    assert services_open(inventory, "rtx-4090") == ()


def test_every_service_has_one_place() -> None:
    inventory = fleet()
    placed = [name for device in inventory.devices for name in services_on(inventory, device)]
    loose = [name for host in (*inventory.hosts, None) for name in homeless(inventory, host)]
    assert sorted([*placed, *loose]) == sorted(inventory.services)


def test_a_co_tenant_shares_its_card_and_says_what() -> None:
    assert services_on(small_fleet(), "b60") == ("text", "pictures")
    assert shared(small_fleet(), "pictures") == "vram"
    assert shared(small_fleet(), "text") == ""
