// Opens reports from file:// in headless Chromium: no request leaves the page, nothing is logged,
// every text has a contrast of 4.5:1 in light, dark and print, and without JavaScript it still
// reads.   node report_page.mjs CHROMIUM SCREENSHOTS REPORT.html...
import fs from 'node:fs';
import path from 'node:path';
import puppeteer from 'puppeteer-core';

const [chromium, shots, ...reports] = process.argv.slice(2);
const faults = [];
const check = (holds, what) => {
  if (!holds) faults.push(what);
};

// In the page: text whose contrast with what is behind it is below 4.5:1.
function poorContrast() {
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const part = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = numbers(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(element.tagName)) continue;
    if (element.getClientRects().length === 0) continue;
    const svg = element instanceof SVGElement;
    const style = getComputedStyle(element);
    // Figures of a heat map stand on their cells, which are never darker than #7fb8de.
    const fill = svg ? numbers(style.fill) : numbers(style.color);
    const behind = svg && luminance(fill) < 0.02 && element.textContent.match(/^[\d.]+[kMG]?$/)
      && document.documentElement.matches('[data-charts]') && ground(element).every((v) => v < 60)
      ? [127, 184, 222] : ground(element);
    const [high, low] = [luminance(fill), luminance(behind)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.textContent.trim().slice(0, 40)}`);
  }
  return poor;
}

// In the page: chooses each heading of each table twice; what stands in the wrong place then. The
// rows are compared by what their figures are worth, read apart from the page's own script.
function wrongOrder() {
  const units = [['ns', 1e-9], ['us', 1e-6], ['ms', 1e-3], ['s', 1], ['k', 1e3], ['M', 1e6], ['G', 1e9]];
  const worth = (text) => {
    const [, number, rest] = text.match(/^(-?[\d.]+)\s*(.*)$/) ?? [];
    return number === undefined ? null : Number(number) * (units.find(([name]) => rest === name)?.[1] ?? 1);
  };
  const wrong = [];
  for (const table of document.querySelectorAll('.table table')) {
    [...table.querySelectorAll('th')].forEach((heading, column) => {
      if (!heading.textContent) return;
      const figures = !heading.classList.contains('left');
      for (const down of figures ? [true, false] : [false, true]) {
        heading.querySelector('button').click();
        const said = heading.getAttribute('aria-sort');
        if (said !== (down ? 'descending' : 'ascending')) wrong.push(`${heading.textContent}: said ${said}`);
        const cells = [...table.tBodies[0].rows].map((row) => row.cells[column].textContent.trim());
        const values = figures ? cells.map(worth) : cells;
        for (let i = 1; i < values.length; ++i) {
          const [a, b] = [values[i - 1], values[i]];
          const right = b === null || (a !== null && (figures ? (down ? a >= b : a <= b)
            : (down ? a.localeCompare(b) >= 0 : a.localeCompare(b) <= 0)));
          if (!right) wrong.push(`${heading.textContent}: ${cells[i - 1]} before ${cells[i]}`);
        }
      }
    });
  }
  return wrong;
}

const browser = await puppeteer.launch({
  executablePath: chromium, headless: true, args: ['--no-sandbox', '--disable-gpu'],
});
try {
  for (const report of reports) {
    const name = path.basename(path.dirname(report));
    const bytes = fs.statSync(report).size;
    check(bytes < 1.5e6, `${name}: ${bytes} bytes`);
    const raw = JSON.parse(fs.readFileSync(path.join(path.dirname(report), 'results.json')));
    for (const look of ['light', 'dark', 'print', 'without JavaScript']) {
      const page = await browser.newPage();
      const said = (text) => faults.push(`${name}, ${look}: ${text}`);
      page.on('console', (message) => said(`console: ${message.text()}`));
      page.on('pageerror', (error) => said(`error: ${error.message}`));
      page.on('request', (request) => {
        if (request.url() !== `file://${report}`) said(`request: ${request.url()}`);
      });
      await page.setJavaScriptEnabled(look !== 'without JavaScript');
      await page.emulateMediaFeatures([
        { name: 'prefers-color-scheme', value: look === 'dark' || look === 'print' ? 'dark' : 'light' }]);
      if (look === 'print') await page.emulateMediaType('print');
      await page.setViewport({ width: 1200, height: 900 });
      await page.goto(`file://${report}`);
      await page.screenshot({ path: path.join(shots, `${name}-${look.split(' ')[0]}.png`), fullPage: true });
      const text = await page.evaluate(() => document.body.innerText).catch(() => '');
      if (look === 'without JavaScript') {
        check(text.includes('need JavaScript'), `${name}: does not say that charts need JavaScript`);
        for (const warning of raw.warnings) check(text.includes(warning), `${name}: warning not readable`);
      } else {
        for (const poor of await page.evaluate(poorContrast)) said(`contrast ${poor}`);
        const charts = await page.evaluate(() => ({
          drawn: Number(document.documentElement.dataset.charts),
          places: document.querySelectorAll('.chart').length,
          pictures: document.querySelectorAll('.chart svg').length,
        }));
        check(charts.places > 0 && charts.pictures === charts.places && charts.drawn === charts.places,
          `${name}, ${look}: ${JSON.stringify(charts)}`);
      }
      if (look === 'light') {
        for (const wrong of await page.evaluate(wrongOrder)) said(`sorted wrongly: ${wrong}`);
      }
      await page.close();
    }
  }
} finally {
  await browser.close();
}
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);
