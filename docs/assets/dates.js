// Adds the age to every absolute date, marks what has gone stale since the page was built, and unfolds for print.
"use strict";
(() => {
  const DAY = 86_400_000;

  function age(days) {
    if (days < 0) return `in ${-days} d`;
    return days === 0 ? "today" : `${days} d`;
  }

  function addAges() {
    const now = Date.now();
    for (const time of document.querySelectorAll("time[datetime]:not([data-aged])")) {
      const days = Math.floor((now - Date.parse(`${time.dateTime}T00:00:00Z`)) / DAY);
      const note = document.createElement("span");
      note.className = "age";
      note.textContent = age(days);
      note.title = "age in days, today";
      time.dataset.aged = String(days);
      time.after(" ", note);
      const limit = Number(time.dataset.staleAfter);
      if (time.dataset.staleAfter === undefined || days <= limit || note.parentElement.querySelector(":scope > .stale")) continue;
      const flag = document.createElement("span");
      flag.className = "stale";
      flag.textContent = "stale";
      note.after(" ", flag);
    }
  }

  document.addEventListener("DOMContentLoaded", addAges);
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:not([open])")) fold.open = true;
  });
})();
