// The points that queries are compared on: several measurements, types, gaps, ties and times.

const base = 1_451_606_400; // 2016-01-01T00:00:00Z

const hosts = ['a', 'b', 'c', 'd'];
const regions = ['eu west', 'us,east', ''];

/** Regular points of several hosts with all types, and holes. */
function cpu(): string[] {
  const lines: string[] = [];
  for (let minute = 0; minute < 120; minute++) {
    hosts.forEach((host, h) => {
      if ((minute + h) % 11 === 0) return;
      const region = regions[h % 3]!;
      const tags = `host=${host}${region === '' ? '' : `,region=${escapeTag(region)}`}`;
      const fields = [`user=${(((minute * 37 + h * 11) % 1000) / 10).toString()}`];
      fields.push(`count=${minute * (h + 1) - 60}i`);
      if (minute % 3 === 0) fields.push(`idle=${100 - h * 7 - (minute % 13)}i`);
      if (minute % 5 !== 0) fields.push(`up=${minute % 2 === 0 ? 'true' : 'false'}`);
      if (minute % 4 === 0) fields.push(`state="s ${minute % 3} \\"${h}\\""`);
      lines.push(`cpu,${tags} ${fields.join(',')} ${base + minute * 60 + h}000000000`);
    });
  }
  return lines;
}

function escapeTag(text: string): string {
  return text.replaceAll(/[ ,=]/g, '\\$&');
}

/** Few points with equal times and equal values, before 1970, and with wide integers. */
const odd = [
  'tie,k=a v=1,i=5i 1000000000',
  'tie,k=b v=1,i=5i 1000000000',
  'tie,k=c v=3,i=-5i 1000000000',
  'tie,k=a v=2,i=7i 2000000000',
  'tie,k=b v=3,i=7i 2000000000',
  'tie,k=a v=3,i=1i 3000000000',
  'old v=1 -3000000000',
  'old v=2.5 -1500000000',
  'old v=-4 500000000',
  'wide n=9223372036854775807i,f=1e300 1',
  'wide n=-9223372036854775808i,f=-1e-300 2',
  'wide n=9007199254740993i,f=0.1 3',
  'wide n=1i,f=100000000000000000000 4',
  'wide n=2i,f=1e21 5',
  'wide n=3i,f=0.000001 6',
  'wide n=4i,f=1e-7 7',
  'one v=42 1451606400000000000',
  'sp\\ ace,ta\\ g=va\\ lue fie\\ ld=1,"quoted"=2 1451606400000000000',
  'text s="a<b>&c",t="line\\nbreak",u="\u00fcn\u00ef\u2028\u{1f600}" 1451606400000000000',
  'irregular v=1 1451606400000000000',
  'irregular v=5 1451606407000000000',
  'irregular v=4 1451606431000000000',
  'irregular v=9 1451606472000000000',
  'irregular v=9 1451606473000000000',
  'irregular v=-3 1451606600000000000',
];

export const points: readonly string[] = [...cpu(), ...odd];
