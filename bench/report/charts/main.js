// Draws the charts of a report: ECharts with only the parts that the reports use.
import * as echarts from 'echarts/core';
import { HeatmapChart, LineChart, ScatterChart } from 'echarts/charts';
import {
  AriaComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent,
  VisualMapComponent,
} from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';

echarts.use([
  HeatmapChart, LineChart, ScatterChart, AriaComponent, GridComponent, LegendComponent,
  MarkLineComponent, TooltipComponent, VisualMapComponent, SVGRenderer,
]);

function scaled(value, units) {
  let unit = 0;
  while (value >= 999.5 && unit + 1 < units.length) {
    value /= 1000;
    ++unit;
  }
  return Number(value.toPrecision(3)) + units[unit];
}
const formatters = {
  '@si': (v) => (typeof v === 'number' ? scaled(v, ['', 'k', 'M', 'G', 'T']) : v),
  '@time': (v) => (typeof v === 'number' ? scaled(v, ['ns', 'us', 'ms', 's']) : v),
};

// A document can name formatters, not hold them.
function withFormatters(value) {
  if (typeof value === 'string' && value in formatters) return formatters[value];
  if (Array.isArray(value)) return value.map(withFormatters);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, withFormatters(v)]));
}

// Each colour has a contrast of 3:1 or more with its ground; text has its own colour.
const themes = {
  light: {
    text: '#1b1f24', line: '#b4bcc6', ground: '#ffffff',
    colours: ['#0b62a8', '#b35900', '#1a7f37', '#8250df', '#bf3989', '#57606a'],
  },
  dark: {
    text: '#e6edf3', line: '#56606b', ground: '#161b22',
    colours: ['#6cb6ff', '#f0a05a', '#57c26b', '#c297ff', '#f778ba', '#aab4bf'],
  },
};

function themed(option, theme) {
  const axis = (one) => ({
    ...one,
    nameTextStyle: { color: theme.text },
    axisLabel: { ...one.axisLabel, color: theme.text },
    axisLine: { lineStyle: { color: theme.line } },
    splitLine: { show: one.type !== 'category', lineStyle: { color: theme.line, opacity: 0.5 } },
  });
  const series = option.series.map((one) => (one.markLine ? {
    ...one,
    markLine: {
      ...one.markLine,
      lineStyle: { ...one.markLine.lineStyle, color: theme.text },
      label: { ...one.markLine.label, color: theme.text },
    },
  } : one));
  return {
    ...option,
    series,
    color: theme.colours,
    textStyle: { color: theme.text, fontFamily: 'system-ui, "DejaVu Sans", sans-serif' },
    legend: option.legend && {
      ...option.legend, textStyle: { color: theme.text }, pageTextStyle: { color: theme.text },
    },
    tooltip: { ...option.tooltip, backgroundColor: theme.ground, textStyle: { color: theme.text } },
    xAxis: axis(option.xAxis),
    yAxis: axis(option.yAxis),
    // A pattern over a heat map would hide the figures in its cells.
    aria: { enabled: true, decal: { show: option.series.every((one) => one.type !== 'heatmap') } },
  };
}

const options = JSON.parse(document.getElementById('options').textContent);
const drawn = [];
for (const [id, option] of Object.entries(options)) {
  const chart = echarts.init(document.getElementById(id), null, { renderer: 'svg' });
  drawn.push({ chart, option: withFormatters(option) });
}
const dark = matchMedia('(prefers-color-scheme: dark)');
function draw(paper) {
  const theme = dark.matches && !paper ? themes.dark : themes.light;
  for (const { chart, option } of drawn) {
    chart.resize();
    chart.setOption(themed(option, theme), { notMerge: true });
  }
}
draw(matchMedia('print').matches);
dark.addEventListener('change', () => draw(false));
matchMedia('print').addEventListener('change', (event) => draw(event.matches));
addEventListener('beforeprint', () => draw(true));
addEventListener('afterprint', () => draw(false));
addEventListener('resize', () => drawn.forEach(({ chart }) => chart.resize()));
document.documentElement.dataset.charts = String(drawn.length);
