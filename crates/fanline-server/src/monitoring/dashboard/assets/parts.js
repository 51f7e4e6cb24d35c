// Components common to several views.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";

/**
 * Polls while the page is visible. Returns the latest value, the latest error, and a function that polls at
 * once. A new `key` starts over.
 */
export function usePoll(key, milliseconds, load) {
  const [told, setTold] = useState({ key: undefined, value: undefined, error: undefined });
  const newest = useRef(load);
  newest.current = load;
  const again = useRef(() => {});
  useEffect(() => {
    let [timer, isOver, isAsking] = [undefined, false, false];
    const turn = async () => {
      clearTimeout(timer);
      if (isOver || isAsking || document.hidden) return;
      isAsking = true;
      try {
        const value = await newest.current();
        if (!isOver) setTold({ key, value, error: undefined });
      } catch (error) {
        if (!isOver) setTold((before) => ({ ...before, error }));
      }
      isAsking = false;
      if (!isOver) timer = setTimeout(turn, milliseconds);
    };
    again.current = turn;
    document.addEventListener("visibilitychange", turn);
    turn();
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", turn);
    };
  }, [key, milliseconds]);
  const value = told.key === key ? told.value : undefined;
  return [value, told.error, () => again.current()];
}

/** Pause after which typing counts as finished. */
const TYPING_MILLISECONDS = 300;

/** The typed text, updated after a pause. */
export function useTyped(value) {
  const [typed, setTyped] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(value), TYPING_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [value]);
  return typed;
}

/** A setting that this browser stores between visits. */
export function useRemembered(name, initial) {
  const [value, setValue] = useState(() => localStorage.getItem(`fanline-${name}`) ?? initial);
  const remember = (next) => {
    localStorage.setItem(`fanline-${name}`, next);
    setValue(next);
  };
  return [value, remember];
}

export function Panel({ title, aside, children, id }) {
  return html`
    <section class="panel" aria-labelledby=${id}>
      <div class="panel-head"><h3 id=${id}>${title}</h3>${aside}</div>
      ${children}
    </section>`;
}

export function Problem({ error }) {
  if (!error) return null;
  return html`<p class="problem" role="alert">${error.message}</p>`;
}

export function Loading() {
  return html`<p class="quiet">Loading…</p>`;
}

export function Empty({ children }) {
  return html`<p class="quiet empty">${children}</p>`;
}

/** The field that the key `/` selects. */
export function Filter({ value, onChange, label }) {
  return html`
    <label class="field filter">
      <span>${label}</span>
      <input type="search" data-filter value=${value} onInput=${(event) => onChange(event.target.value)}
        placeholder="press / to type here" autocomplete="off" spellcheck=${false} />
    </label>`;
}

/** Whether the texts together contain all words of the filter. */
export function passes(filter, ...texts) {
  const text = texts.join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Number of columns above which a table is set closer. */
const COLUMNS_USUAL = 11;

/**
 * A table. Columns are `{ key, label, value, cell, isNumber, isWhole, isFixed }`: `value` is the sort key and,
 * without `cell`, the content; a whole column does not wrap, and a fixed one is not sortable. With `sort`, the
 * server has sorted the rows.
 */
export function Table({ caption, columns, rows, rowKey, sort, onSort, onOpen, opened, detail, rowClass }) {
  const [own, setOwn] = useState(undefined);
  const by = sort ?? own;
  const sorted = sort ? rows : inOrder(rows, columns, own);
  const change = (key) => {
    if (onSort) onSort(key);
    else setOwn(by?.key === key ? { key, isUp: !by.isUp } : { key, isUp: !columns.find((c) => c.key === key).isNumber });
  };
  const order = (column) => {
    if (by?.key !== column.key) return undefined;
    return by.isUp ? "ascending" : "descending";
  };
  return html`
    <div class="scroll" role="region" aria-label="${caption}, table" tabindex="0">
      <table class=${columns.length > COLUMNS_USUAL ? "many" : undefined}>
        <caption class="unseen">${caption}</caption>
        <thead><tr>
          ${onOpen && html`<th scope="col"><span class="unseen">Details</span></th>`}
          ${columns.map((column) => html`
            <th scope="col" class=${column.isNumber ? "number" : undefined} aria-sort=${order(column)}>
              ${column.isFixed
                ? column.label
                : html`<button class="sort" onClick=${() => change(column.key)}>${column.label}<span aria-hidden="true">${
                    by?.key === column.key ? (by.isUp ? " ▲" : " ▼") : ""
                  }</span></button>`}
            </th>`)}
        </tr></thead>
        <tbody>
          ${sorted.map((row) => {
            const key = rowKey(row);
            const isOpen = opened === key;
            return html`
              <tr key=${key} class=${rowClass?.(row)}>
                ${onOpen && html`<td class="opener"><button class="plain" aria-expanded=${isOpen ? "true" : "false"}
                    aria-label="Details of ${key}" onClick=${() => onOpen(isOpen ? undefined : key)}>${isOpen ? "▾" : "▸"}</button></td>`}
                ${columns.map((column) => html`
                  <td class=${column.isNumber ? "number" : column.isWhole ? "whole" : undefined} data-label=${column.label}>
                    ${column.cell ? column.cell(row) : column.value(row)}
                  </td>`)}
              </tr>
              ${isOpen && html`<tr key=${`${key} details`} class="details"><td colspan=${columns.length + 1}>${detail(row)}</td></tr>`}`;
          })}
        </tbody>
      </table>
    </div>`;
}

function inOrder(rows, columns, sort) {
  const column = columns.find(({ key }) => key === sort?.key);
  if (!column?.value) return rows;
  const sign = sort.isUp ? 1 : -1;
  return [...rows].sort((a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    const order = typeof x === "number" && typeof y === "number" ? x - y : `${x}`.localeCompare(`${y}`);
    return order * sign;
  });
}

/** Names and values. */
export function Facts({ facts }) {
  return html`
    <dl class="facts">
      ${facts.filter(Boolean).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>`;
}

/** A dialog, which Escape closes. */
export function Dialog({ title, onClose, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`
    <dialog ref=${dialog} aria-labelledby="dialog-title" onClose=${onClose}
      onClick=${(event) => event.target === dialog.current && onClose()}>
      <div class="dialog">
        <div class="panel-head">
          <h2 id="dialog-title">${title}</h2>
          <button onClick=${onClose}>Close</button>
        </div>
        ${children}
      </div>
    </dialog>`;
}

/** A confirmation before an action that cannot be undone. */
export function Confirm({ title, action, onYes, onNo, children }) {
  return html`
    <${Dialog} title=${title} onClose=${onNo}>
      ${children}
      <p><button class="danger" onClick=${onYes}>${action}</button></p>
    <//>`;
}
