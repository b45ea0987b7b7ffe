// The first screen of a report as a picture.   node screenshot.mjs CHROMIUM REPORT OUT.png light|dark
import puppeteer from 'puppeteer-core';

const [chromium, report, out, look] = process.argv.slice(2);
const browser = await puppeteer.launch({
  executablePath: chromium, headless: true, args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const page = await browser.newPage();
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: look }]);
  await page.setViewport({ width: 1200, height: 1000 });
  await page.goto(`file://${report}`);
  await page.screenshot({ path: out });
} finally {
  await browser.close();
}
