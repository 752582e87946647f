"""Lazy by scale, linear by width (Liu, Zhu & Belkin 2020, §1.1; Chizat, Oyallon & Bach 2019)."""

from dashboard.views.entry import Page

PAGE = Page("Lazy", ":material/alt_route:", "Lazy by scale or linear by width?", place=7)
